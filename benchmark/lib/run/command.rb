# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"
require_relative "../common/signals"
require_relative "chart"
require_relative "measurement"
require_relative "options"
require_relative "report"
require_relative "surroundings"

module Run
  # The command line.
  class Command
    def initialize(arguments)
      @options = Options.new(arguments)
    rescue OptionParser::ParseError => e
      abort "run: #{e.message}; see --help"
    end

    # The exit status: 0 if every server answered every request, 1 if not, 130 after Ctrl-C.
    def run
      $stdout.sync = true
      Bench.interrupt_on_signals
      prepare
      results = Dir.mktmpdir("pitchfork-rs-benchmark-") { |directory| measure_all(directory) }
      write(results)
      verdict(results)
    rescue Interrupt
      warn "interrupted"
      130
    rescue Bench::Tool::Failed => e
      abort "run: #{e.message}"
    end

    private

    def prepare
      abort "run: wants the command wrk, which is not installed" unless Bench::Tool.there?("wrk")
      Contender.build_floor
      contenders.each { |contender| puts "#{contender.name.ljust(14)} #{contender.version}" }
      absent = @options.servers.reject(&:there?).map(&:name)
      puts "not installed: #{absent.join(", ")}" if absent.any?
      Surroundings.to_h.each { |name, value| puts "#{name}: #{value}" }
      warn "run: this machine is busy: do not trust the figures" if Surroundings.busy?
    end

    # The baselines always take part.
    def contenders
      @contenders ||= CONTENDERS.select { |contender| wanted?(contender) && contender.there? }
    end

    def wanted?(contender)
      @options.servers.include?(contender) || @options.scenarios.any? { |one| one.baseline == contender.name }
    end

    # Each scenario may use its share of the time that is left.
    def measure_all(directory)
      finish = Bench.now + @options.limit
      scenarios = @options.scenarios
      scenarios.each_with_index.map do |scenario, index|
        result = measurement(scenario, directory, (finish - Bench.now) / (scenarios.size - index)).run
        puts "", Report.new(result)
        result
      end
    end

    # A second for each server goes to counting the system calls, and to the end. The floor does no work, so it has no
    # place where work is what is measured.
    def measurement(scenario, directory, limit)
      able = scenario.mixed? ? contenders.reject { |contender| contender.name == "floor" } : contenders
      Measurement.new(scenario, able, directory:, rounds: @options.rounds, seconds: @options.seconds,
                                      limit: limit - able.size)
    end

    def write(results)
      here = { **Surroundings.to_h, rounds: @options.rounds, seconds: @options.seconds }
      versions = contenders.to_h { |contender| [contender.name, contender.version] }
      FileUtils.mkdir_p(File.dirname(@options.output))
      record = { surroundings: here, versions:, scenarios: results.map(&:to_h) }
      File.write("#{@options.output}.json", JSON.pretty_generate(record))
      File.write("#{@options.output}.svg", Chart.new(results, subtitle(here)).to_s)
      puts "", "written: #{@options.output}.json, #{@options.output}.svg"
    end

    def subtitle(here)
      "Ruby #{RUBY_VERSION}, #{here[:processors]} × #{here[:processor]}, Linux #{here[:kernel]}, #{here[:at]}; " \
        "median, lowest and highest of #{here[:rounds]} rounds"
    end

    def verdict(results)
      failed = results.select { |result| result.failures.any? }
      failed.each { |result| warn "run: #{result.scenario.name}: #{result.failures.keys.join(", ")} failed, see above" }
      failed.empty? ? 0 : 1
    end
  end
end
