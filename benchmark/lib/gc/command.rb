# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"
require_relative "../common/arguments"
require_relative "../common/signals"
require_relative "../run/scenario"
require_relative "../run/server"
require_relative "../run/statistics"
require_relative "../run/surroundings"
require_relative "pace"

module Garbage
  # The command line.
  class Command
    include Bench::Arguments

    RACKUP = File.expand_path("app.ru", __dir__)
    OUTPUT = File.expand_path("../../../tmp/benchmark/gc.json", __dir__)
    SCENARIO = Run::Scenario.new(name: "gc", path: "/", answer: "1274250\n")
    USUAL = "oob_gc false"
    WARM_UP = 2
    # Name, unit, and digits of each figure.
    FIGURES = { p50: ["p50", "ms", 2], p99: ["p99", "ms", 2], max: ["longest", "ms", 1],
                collected: ["requests with a collection", "%", 2], processor: ["CPU time a request", "ms", 2] }.freeze

    def initialize(arguments)
      @rounds = 6
      @seconds = 5
      @interval = 10
      @workers = 2
      @limit = 110
      @output = OUTPUT
      @settings = ["oob_gc true"]
      read(arguments, parser)
    rescue OptionParser::ParseError => e
      abort "gc: #{e.message}; see --help"
    end

    # The exit status: 0 if every request was answered, 1 if not, 130 after Ctrl-C.
    def run
      $stdout.sync = true
      Bench.interrupt_on_signals
      Run::Surroundings.to_h.each { |name, value| puts "#{name}: #{value}" }
      warn "gc: this machine is busy: do not trust the figures" if Run::Surroundings.busy?
      rounds = Dir.mktmpdir("pitchfork-rs-gc-") { |directory| measure(directory) }
      report(rounds)
      write(rounds)
      0
    rescue Interrupt
      warn "interrupted"
      130
    rescue Bench::Stuck, Bench::Client::Failed, Run::Server::Wrong => e
      abort "gc: #{e.message}"
    end

    private

    def measure(directory)
      finish = Bench.now + @limit
      servers = start(directory)
      warm_up(servers)
      measure_rounds(servers, finish)
    ensure
      servers&.each_value(&:stop)
    end

    def measure_rounds(servers, finish)
      rounds = []
      longest = 0
      @rounds.times do |number|
        began = Bench.now
        if rounds.any? && began + longest > finish
          puts "#{number} of #{@rounds} rounds: there was no time for more"
          break
        end
        rounds << measure_round(servers, number)
        longest = [longest, Bench.now - began].max
      end
      rounds
    end

    def start(directory)
      [USUAL, *@settings].each_with_index.to_h do |setting, number|
        [setting, Run::Server.new(contender(setting), SCENARIO, File.join(directory, number.to_s)).start]
      end
    end

    def contender(setting)
      Run::Contender.new(setting) do |place|
        config = place.write("config.rb", <<~RUBY)
          worker_processes #{@workers}
          listen #{place.address.directive.dump}
          #{setting}
        RUBY
        [RbConfig.ruby, "-I#{Run::Contender::ROOT}/lib", "#{Run::Contender::ROOT}/exe/pitchfork-rs", "-E", "production",
         "-c", config, RACKUP]
      end
    end

    def warm_up(servers)
      servers.each_value { |server| pace(server.wait_until_ready).run(WARM_UP, 0) }
    end

    def pace(server) = Pace.new(server.address, SCENARIO.path, @interval / 1000.0)

    # All settings get the same requests, and each time somebody else begins.
    def measure_round(servers, number)
      servers.to_a.rotate(number).to_h.transform_values { |server| figures(server, number + 1) }
    end

    def figures(server, seed)
      before = server.processor_times
      seen = pace(server).run(@seconds, seed)
      used = server.processor_times.sum { |pid, time| time - before.fetch(pid, 0) }
      { p50: seen.quantile(0.5) * 1e3, p99: seen.quantile(0.99) * 1e3, max: seen.times.last * 1e3,
        collected: 100.0 * seen.collected / seen.requests, processor: used * 1e3 / seen.requests,
        requests: seen.requests }
    end

    def report(rounds)
      FIGURES.each do |figure, (name, unit, digits)|
        puts "", "#{name}, #{unit}"
        [USUAL, *@settings].each { |setting| puts line(rounds, figure, setting, digits) }
      end
    end

    def line(rounds, figure, setting, digits)
      values, usual = [setting, USUAL].map { |one| rounds.map { |round| round[one][figure] } }
      ratio = Run::Spread.of_ratios(values, usual) unless setting == USUAL
      compared = ratio && "  ×#{Run.brief(ratio.middle)} (#{Run.brief(ratio.low)} to #{Run.brief(ratio.high)})"
      "  #{setting.ljust(20)} #{format("%10.#{digits}f", Run::Spread.of(values).middle)}#{compared}"
    end

    def write(rounds)
      FileUtils.mkdir_p(File.dirname(@output))
      here = { **Run::Surroundings.to_h, seconds: @seconds, interval: @interval, workers: @workers }
      File.write(@output, JSON.pretty_generate(here.merge(rounds: rounds)))
      puts "", "written: #{@output}"
    end

    def parser
      OptionParser.new("Usage: gc [options]") do |opts|
        opts.on("--rounds N", Integer, "rounds (6)") { |n| @rounds = positive(n) }
        opts.on("--seconds N", Integer, "of each setting in each round (5)") { |n| @seconds = positive(n) }
        opts.on("--interval MS", Integer, "milliseconds between requests, on average (10)") do |n|
          @interval = positive(n)
        end
        opts.on("--workers N", Integer, "workers of each server (2)") { |n| @workers = positive(n) }
        opts.on("--limit N", Integer, "seconds after which no round begins (110)") { |n| @limit = positive(n) }
        opts.on("--settings A,B", Array, "what is compared with #{USUAL}, such as 'oob_gc every: 250'") do |settings|
          @settings = settings
        end
        opts.on("--output PATH", "where the figures go (tmp/benchmark/gc.json)") { |path| @output = path }
      end
    end
  end
end
