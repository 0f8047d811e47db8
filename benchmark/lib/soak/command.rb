# frozen_string_literal: true

require_relative "../common/arguments"
require_relative "scenarios/drain"
require_relative "scenarios/kill_mold"
require_relative "scenarios/kill_monitor"
require_relative "scenarios/kill_workers"
require_relative "scenarios/refork"
require_relative "scenarios/self_check"

module Soak
  # The command line.
  class Command
    include Bench::Arguments

    Options = Struct.new(:seconds, :every, :times, :clients, :workers, :unix, :keep, keyword_init: true)

    # `all` drains over both kinds of sockets, and reforks under a second kind of load: among many clients nobody
    # notices a connection that no worker was woken for, because the next one wakes one.
    ALL = [
      [SelfCheck, {}],
      [Refork, {}],
      [Refork, { clients: 1, every: 0.5, seconds: 30 }],
      [KillWorkers, {}],
      [KillMold, {}],
      [Drain, {}],
      [Drain, { unix: true }],
      [KillMonitor, {}]
    ].freeze
    SCENARIOS = ALL.to_h { |scenario, _| [scenario::NAME, scenario] }.freeze

    def initialize(arguments)
      @options = Options.new(every: 3.0, times: 5, workers: 4, unix: false, keep: false)
      @names = parser.parse(arguments)
    rescue OptionParser::ParseError => e
      abort "soak: #{e.message}"
    end

    # The exit status: 0 if every expectation held, 1 if not.
    def run
      $stdout.sync = true
      %w[INT TERM HUP].each { |signal| trap(signal) { raise Interrupt } }
      reports = chosen.map { |scenario, changes| run_one(scenario, changes) }
      puts "", Report.table(reports) if reports.size > 1
      reports.all?(&:ok?) ? 0 : 1
    rescue Interrupt
      warn "interrupted"
      130
    end

    private

    def chosen
      abort parser.help unless @names.size == 1
      name = @names.first
      return ALL if name == "all"

      [[SCENARIOS.fetch(name) { abort "soak: no scenario #{name}\n#{parser.help}" }, {}]]
    end

    def run_one(scenario, changes)
      options = @options.dup
      changes.each { |name, value| options[name] = value }
      report = scenario.new(options).run
      puts "", report
      report
    end

    def parser
      @parser ||= OptionParser.new("Usage: soak [options] #{[*SCENARIOS.keys, "all"].join("|")}") do |opts|
        opts.on("--seconds N", Float, "duration of refork (60) and of the kill-… (30)") { |n| set(:seconds, n) }
        opts.on("--every N", Float, "seconds between two USR2 (3)") { |n| set(:every, n) }
        opts.on("--times N", Integer, "runs of drain (5)") { |n| set(:times, n) }
        opts.on("--clients N", Integer, "connections in load (8; drain 32)") { |n| set(:clients, n) }
        opts.on("--workers N", Integer, "workers of the server (4)") { |n| set(:workers, n) }
        opts.on("--unix", "listen on a Unix socket instead of TCP") { set(:unix, true) }
        opts.on("--keep", "keep the server's directory and log even if all went well") { set(:keep, true) }
      end
    end

    def set(name, value)
      @options[name] = value.is_a?(Numeric) ? positive(value) : value
    end
  end
end
