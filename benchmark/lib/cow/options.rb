# frozen_string_literal: true

require_relative "../common/arguments"
require_relative "application"
require_relative "subjects"

module Cow
  # What the command line asks for.
  class Options
    include Bench::Arguments

    # Files that are written unless others are named.
    OUTPUT = File.join(ROOT, "tmp/benchmark/cow")

    attr_reader :applications, :subjects, :amounts, :rounds, :limit, :output

    # Raises OptionParser::ParseError.
    def initialize(arguments)
      @applications = APPLICATIONS.to_h { |application| [application.name, application] }
      @subjects = SUBJECTS.to_h { |subject| [subject::NAME, subject] }
      @amounts = Amounts.new(workers: 4, warm: 100, requests: 5000)
      @rounds = 3
      @limit = 285.0
      @output = OUTPUT
      read(arguments, parser)

      @applications = @applications.values
      @subjects = @subjects.values
    end

    private

    def parser
      OptionParser.new("Usage: cow [options]") do |opts|
        opts.on("--only A,B", Array, "applications: #{@applications.keys.join(", ")}",
                "(those that can be served)") do |names|
          @applications = @applications.slice(*choose(names, @applications.keys))
        end
        opts.on("--subjects A,B", Array, "what is measured: #{@subjects.keys.join(", ")}",
                "(what is installed)") do |names|
          @subjects = @subjects.slice(*(@subjects.keys & choose(names, @subjects.keys)))
        end
        add_amounts(opts)
        opts.on("--output PATH", "writes PATH.json and PATH.svg (tmp/benchmark/cow)") { |path| @output = path }
      end
    end

    def add_amounts(opts)
      opts.on("--workers N", Integer, "workers, or forks (4)") { |n| @amounts.workers = positive(n) }
      opts.on("--warm N", Integer, "calls of each process until it is warm (100)") { |n| @amounts.warm = positive(n) }
      opts.on("--requests N", Integer, "requests to all together after the fork (5000)") do |n|
        @amounts.requests = positive(n)
      end
      opts.on("--rounds N", Integer, "how often everything is started and measured (3)") { |n| @rounds = positive(n) }
      opts.on("--limit N", Float, "seconds for everything, if need be with fewer rounds (285)") do |n|
        @limit = positive(n)
      end
    end
  end
end
