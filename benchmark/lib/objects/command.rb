# frozen_string_literal: true

require "rack"
require "tmpdir"
require_relative "../common/arguments"
require_relative "../common/client"
require_relative "../common/signals"
require_relative "../run/server"
require_relative "../run/scenario"

module Objects
  # The command line.
  class Command
    include Bench::Arguments

    # Before them each server makes what it makes once.
    FIRST = 50
    REQUESTS = 100
    TYPES = %w[T_STRING T_HASH T_ARRAY T_DATA T_OBJECT T_IMEMO].freeze
    FORMAT = "%-14s %7s#{" %9s" * TYPES.size} %9s".freeze

    def initialize(arguments)
      @servers = known
      read(arguments, parser)
    rescue OptionParser::ParseError => e
      abort "objects: #{e.message}; see --help"
    end

    # The exit status: 0, or 130 after Ctrl-C.
    def run
      $stdout.sync = true
      Bench.interrupt_on_signals
      puts format(FORMAT, "", "objects", *TYPES.map { |type| type.delete_prefix("T_").downcase }, "others")
      show("application", alone)
      contenders.each { |contender| show(contender.name, serve(contender)) }
      0
    rescue Interrupt
      warn "interrupted"
      130
    rescue Bench::Stuck, Bench::Client::Failed, Run::Server::Wrong => e
      abort "objects: #{e.message}"
    end

    private

    # What the application makes by itself, which each server's figures hold too.
    def alone
      ENV["BENCHMARK_FILE"] = File::NULL
      app, = Rack::Builder.parse_file(Run::Contender::RACKUP)
      count { app.call({ "PATH_INFO" => "/objects" })[2].first }
    ensure
      GC.enable
    end

    def serve(contender)
      scenario = Run::Scenario.new(name: "objects", path: "/hello")
      Dir.mktmpdir("pitchfork-rs-objects-") do |directory|
        server = Run::Server.new(contender, scenario, directory).start
        server.wait_until_ready
        client = Bench::Client.new(server.address)
        count { client.get("/objects").body }
      ensure
        server&.stop
      end
    end

    # @return [Hash{String => Float}] of each type the objects for each answer
    def count(&answer)
      FIRST.times(&answer)
      before = answer.call
      (REQUESTS - 1).times(&answer)
      # Parsed afterwards: that makes objects too.
      before, after = [before, answer.call].map { |text| parse(text) }
      before.to_h { |type, count| [type, (after[type] - count).fdiv(REQUESTS)] }
    end

    def parse(text)
      counts = text.lines.to_h { |line| line.split.then { |type, count| [type, Integer(count)] } }
      objects = counts.delete("TOTAL") - counts.delete("FREE")
      { "objects" => objects, **counts, "others" => objects - counts.values.sum }
    end

    def show(name, counts)
      puts format(FORMAT, name, *counts.values_at("objects", *TYPES, "others").map { |n| format("%.1f", n) })
    end

    def contenders
      Run::CONTENDERS.select { |contender| @servers.include?(contender.name) && contender.there? }
    end

    # The floor has no Ruby.
    def known = Run::CONTENDERS.map(&:name) - ["floor"]

    def parser
      OptionParser.new("Usage: objects [options]") do |opts|
        opts.on("--servers A,B", Array, "of #{known.join(", ")} (those that are installed)") do |names|
          @servers = choose(names, known)
        end
      end
    end
  end
end
