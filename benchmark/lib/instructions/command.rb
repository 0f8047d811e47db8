# frozen_string_literal: true

require "tmpdir"
require_relative "../common/arguments"
require_relative "../common/signals"
require_relative "../common/tool"
require_relative "callgrind"
require_relative "record"

module Instructions
  # The command line.
  class Command
    include Bench::Arguments

    # The difference between the two makes start and end cancel out, the first requests with what they load as well.
    FEW = 200
    MANY = 1200

    def initialize(arguments)
      @times = 3
      read(arguments, parser)
    rescue OptionParser::ParseError => e
      abort "instructions: #{e.message}; see --help"
    end

    # The exit status: 0 if the count is acceptable, 1 if not, 130 after Ctrl-C.
    def run
      abort "instructions: wants the command valgrind, which is not installed" unless Bench::Tool.there?("valgrind")
      $stdout.sync = true
      Bench.interrupt_on_signals
      counts = Array.new(@times) { count.tap { |counted| puts "#{counted} instructions per request" } }
      conclude(counts.sort[counts.size / 2]) ? 0 : 1
    rescue Interrupt
      warn "interrupted"
      130
    rescue Bench::Stuck, Bench::Client::Failed => e
      abort "instructions: #{e.message}"
    end

    private

    def count
      few, many = [FEW, MANY].map do |requests|
        Dir.mktmpdir("pitchfork-rs-instructions-") { |directory| Callgrind.new(directory).count(requests) }
      end
      (many - few) / (MANY - FEW)
    end

    def conclude(counted)
      record = Record.new
      verdict = record.verdict(Record.combination, counted)
      return puts(verdict.text) || verdict.ok unless @record

      record.write(Record.combination, counted)
      puts "recorded: #{counted} for #{Record.combination}"
      true
    end

    def parser
      OptionParser.new("Usage: instructions [options]") do |opts|
        opts.on("--record", "write the count into #{File.basename(Record::FILE)}") { @record = true }
        opts.on("--times N", Integer, "count so often, and take the median (3)") do |times|
          @times = positive(times)
        end
      end
    end
  end
end
