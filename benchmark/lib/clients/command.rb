# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "../common/signals"
require_relative "../run/surroundings"
require_relative "beside"
require_relative "busy"
require_relative "options"

module Clients
  # The command line.
  class Command
    def initialize(arguments)
      @options = Options.new(arguments)
      Crowd.check(@options.counts.values.sum) unless @options.busy?
    rescue OptionParser::ParseError => e
      abort "clients: #{e.message}; see --help"
    rescue Crowd::TooMany => e
      abort "clients: #{e.message}"
    end

    # The exit status: 0 if every expectation held, 1 if one did not, 130 after Ctrl-C.
    def run
      $stdout.sync = true
      Bench.interrupt_on_signals
      surroundings = Run::Surroundings.to_h
      warn "clients: this machine is busy, which makes everybody wait" if Run::Surroundings.busy?
      scenario = (@options.busy? ? Busy : Beside).new(@options)
      report = scenario.run
      puts "", report
      write(surroundings:, **scenario.record, expectations: report.expectations.map(&:to_h))
      report.ok? ? 0 : 1
    rescue Interrupt
      warn "interrupted"
      130
    end

    private

    def write(record)
      FileUtils.mkdir_p(File.dirname(@options.output))
      File.write(@options.output, JSON.pretty_generate(record))
      puts "", "written: #{@options.output}"
    end
  end
end
