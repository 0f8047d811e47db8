# frozen_string_literal: true

require "optparse"

module Clients
  # What the command line asks for.
  class Options
    # A file that is written unless another is named.
    OUTPUT = File.expand_path("../../../tmp/benchmark/clients.json", __dir__)

    attr_reader :counts, :connections, :pause, :response, :seconds, :refork, :output, :keep

    # Raises OptionParser::ParseError.
    def initialize(arguments)
      @counts = { senders: 500, readers: 500, idle: 5_000 }
      @connections = 8
      @pause = 0.01
      @response = 128 * 1024
      @seconds = 20.0
      @output = OUTPUT
      @doings = []
      rest = parser.parse(arguments)
      raise OptionParser::InvalidArgument, rest.join(" ") if rest.any?
      raise OptionParser::InvalidArgument, "--busy goes with none of the others" if busy? && @doings.size > 1
    end

    def kill_workers? = @doings.include?(:kill_workers)
    def kill_reactor? = @doings.include?(:kill_reactor)
    def drain? = @doings.include?(:drain)
    def busy? = @doings.include?(:busy)

    # What the scenario is called.
    def name = ["clients", *@doings.map { |doing| doing.to_s.tr("_", "-") }].join(" ")

    private

    def parser
      OptionParser.new("Usage: clients [options]") do |opts|
        add_amounts(opts)
        add_doings(opts)
        opts.on("--output PATH", "writes that file (tmp/benchmark/clients.json)") { |path| @output = path }
        opts.on("--keep", "keep the server's directory and log even if all went well") { @keep = true }
      end
    end

    def add_amounts(opts)
      opts.on("--senders N", Integer, "send a request a byte a second (500)") { |n| count(:senders, n) }
      opts.on("--readers N", Integer, "read a response a byte a second (500)") { |n| count(:readers, n) }
      opts.on("--idle N", Integer, "keep a connection open (5000)") { |n| count(:idle, n) }
      opts.on("--connections N", Integer, "ask for something short beside them (8; busy 50)") do |n|
        @connections = positive(n)
      end
      opts.on("--pause N", Float, "seconds between an answer and the next request (0.01; busy 0.1)") do |n|
        @pause = positive(n)
      end
      opts.on("--response N", Integer, "bytes of the response that is read slowly (131072)") do |n|
        @response = positive(n)
      end
      opts.on("--seconds N", Float, "how long the load goes on beside the others (20); alone a third of it") do |n|
        @seconds = positive(n)
      end
    end

    def add_doings(opts)
      opts.on("--refork N", Float, "USR2 every so many seconds meanwhile") do |n|
        @refork = positive(n)
        @doings << :refork
      end
      opts.on("--kill-workers", "KILL for a random worker each second meanwhile") { @doings << :kill_workers }
      opts.on("--kill-reactor", "KILL for the reactor in the middle") { @doings << :kill_reactor }
      opts.on("--drain", "QUIT in the middle") { @doings << :drain }
      opts.on("--busy", "instead: one of two workers is busy for 5 s, beside 50 connections") { be_busy }
    end

    def be_busy
      @doings << :busy
      @connections = 50
      @pause = 0.1
    end

    def count(kind, number)
      raise OptionParser::InvalidArgument, "#{number}, wants 0 or more" if number.negative?

      @counts[kind] = number
    end

    def positive(number)
      raise OptionParser::InvalidArgument, "#{number}, wants more than 0" unless number.positive?

      number
    end
  end
end
