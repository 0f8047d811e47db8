# frozen_string_literal: true

require_relative "../common/arguments"
require_relative "contender"
require_relative "scenario"

module Run
  # What the command line asks for.
  class Options
    include Bench::Arguments

    # Files that are written unless others are named.
    OUTPUT = File.join(Contender::ROOT, "tmp/benchmark/run")

    attr_reader :scenarios, :servers, :rounds, :seconds, :limit, :output

    # Raises OptionParser::ParseError.
    def initialize(arguments)
      @scenarios = USUAL
      @servers = CONTENDERS
      @rounds = 5
      @seconds = 1
      @limit = 285.0
      @output = OUTPUT
      read(arguments, parser)
    end

    private

    def parser
      OptionParser.new("Usage: run [options]") do |opts|
        opts.on("--only A,B", Array, "scenarios: #{names_of(SCENARIOS).join(", ")}", "(all but fairness)") do |names|
          @scenarios = named(names, SCENARIOS)
        end
        opts.on("--servers A,B", Array, "servers: #{names_of(CONTENDERS).join(", ")}",
                "(those that are installed)") do |names|
          @servers = named(names, CONTENDERS)
        end
        add_amounts(opts)
        opts.on("--output PATH", "writes PATH.json and PATH.svg (tmp/benchmark/run)") { |path| @output = path }
      end
    end

    def add_amounts(opts)
      opts.on("--rounds N", Integer, "how often each server is measured (5)") { |n| @rounds = positive(n) }
      opts.on("--seconds N", Integer, "how long each time (1)") { |n| @seconds = positive(n) }
      opts.on("--limit N", Float, "seconds for everything, if need be with fewer rounds (285)") do |n|
        @limit = positive(n)
      end
    end

    def names_of(things) = things.map(&:name)

    def named(names, known)
      choose(names, names_of(known)).map { |name| known.find { |one| one.name == name } }
    end
  end
end
