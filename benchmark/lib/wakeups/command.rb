# frozen_string_literal: true

require "tmpdir"
require_relative "../common/arguments"
require_relative "../common/client"
require_relative "../common/signals"
require_relative "../run/server"
require_relative "../run/scenario"
require_relative "../run/statistics"
require_relative "switches"

module Wakeups
  # The command line.
  class Command
    include Bench::Arguments

    Counts = Struct.new(:workers, :woken, :switches, :idle, keyword_init: true)

    FORMAT = "%-14s %8s  %-26s %-22s %s"

    def initialize(arguments)
      @workers = 64
      @requests = 100
      @servers = %w[pitchfork-rs]
      read(arguments, parser)
    rescue OptionParser::ParseError => e
      abort "wakeups: #{e.message}; see --help"
    end

    # The exit status: 0 if a request wakes one worker of this server, 1 if it wakes more, 130 after Ctrl-C.
    def run
      $stdout.sync = true
      Bench.interrupt_on_signals
      puts format(FORMAT, "", "workers", "woken by a request (most)", "switches per request", "switches/s, idle").rstrip
      counts = contenders.to_h { |contender| [contender.name, measure(contender)] }
      woken = counts["pitchfork-rs"]&.woken or return 0
      return 0 if Run::Spread.of(woken).middle == 1

      warn "wakeups: a request has to wake one worker, and no other"
      1
    rescue Interrupt
      warn "interrupted"
      130
    rescue Bench::Stuck, Bench::Client::Failed, Run::Server::Wrong => e
      abort "wakeups: #{e.message}"
    end

    private

    def contenders
      Run::CONTENDERS.select { |contender| @servers.include?(contender.name) && contender.there? }
    end

    def measure(contender)
      scenario = Run::Scenario.new(name: "wakeups", path: "/hello", workers: @workers)
      Dir.mktmpdir("pitchfork-rs-wakeups-") do |directory|
        server = Run::Server.new(contender, scenario, directory).start
        server.wait_until_ready
        counts = count(server)
        puts line(contender.name, counts)
        counts
      ensure
        server&.stop
      end
    end

    def count(server)
      workers = Switches.workers(server.pids)
      began = Bench.now
      differences = Array.new(@requests) { difference(workers) { ask(server) } }
      took = Bench.now - began
      idle = difference(workers) { sleep took }
      Counts.new(workers: workers.size, woken: differences.map { |one| one.count(&:positive?) },
                 switches: differences.sum(&:sum).fdiv(@requests), idle: idle.sum / took)
    end

    def ask(server)
      Bench::Client.new(server.address).get(server.scenario.path)
    end

    # How often each of them has gone to sleep meanwhile.
    def difference(workers)
      before = when_asleep(workers)
      yield
      after = when_asleep(workers)
      workers.map { |pid| after[pid] - before[pid] }
    end

    # Who has been woken and not yet run is not asleep either.
    def when_asleep(workers)
      Bench.wait_until("sleep of all workers", seconds: 10, poll: 0.001) { Switches.of(workers) }
    end

    def line(name, counts)
      spread = Run::Spread.of(counts.woken)
      format(FORMAT, name, counts.workers, "#{format("%g", spread.middle)} (#{spread.high})",
             format("%.2f", counts.switches), format("%.1f", counts.idle))
    end

    def parser
      OptionParser.new("Usage: wakeups [options]") do |opts|
        opts.on("--workers N", Integer, "idle workers (64)") { |n| @workers = positive(n) }
        opts.on("--requests N", Integer, "requests, one after the other (100)") { |n| @requests = positive(n) }
        opts.on("--servers A,B", Array, "of #{known.join(", ")} (pitchfork-rs)") do |names|
          @servers = choose(names, known)
        end
      end
    end

    # The floor's workers have no titles.
    def known = Run::CONTENDERS.map(&:name) - ["floor"]
  end
end
