# frozen_string_literal: true

require_relative "../common/tool"
require_relative "contender"

module Run
  # What drives a server: wrk, or the load of the floor's program where wrk cannot.
  class Load
    # What the load saw. Times are in microseconds; `kinds` has the 99th percentile of each kind, if there are several.
    Seen = Struct.new(:requests, :seconds, :p50, :p99, :kinds, keyword_init: true) do
      def rate = requests / seconds
    end

    # Answers that were not 200, or none at all.
    class Errors < StandardError; end

    UNITS = { "us" => 1.0, "ms" => 1e3, "s" => 1e6, "m" => 6e7 }.freeze
    # Beyond what the load itself takes.
    PATIENCE = 15

    class << self
      # Reads what `wrk --latency` writes. Raises Errors if any request went wrong.
      def parse_wrk(output)
        errors = output[/Socket errors: .*/] || output[/Non-2xx or 3xx responses: \d+/]
        raise Errors, errors if errors

        requests, number, unit = output.match(/^\s*(\d+) requests in ([\d.]+)(us|ms|s|m),/)&.captures
        raise Errors, "wrk said:\n#{output}" unless requests&.to_i&.positive?

        Seen.new(requests: Integer(requests), seconds: Float(number) * UNITS.fetch(unit) / 1e6,
                 p50: percentile(output, 50), p99: percentile(output, 99), kinds: {})
      end

      # Reads what `floor load` writes.
      def parse_floor(output)
        all, *kinds = output.lines(chomp: true).map { |line| line.split("\t") }
        raise Errors, "floor said:\n#{output}" unless all&.size == 6 && Integer(all[1]).positive?

        Seen.new(requests: Integer(all[1]), seconds: Float(all[2]), p50: Float(all[3]), p99: Float(all[4]),
                 kinds: kinds.size > 1 ? kinds.to_h { |kind| [kind[0], Float(kind[4])] } : {})
      end

      private

      def percentile(output, percent)
        number, unit = output.match(/^\s*#{percent}(?:\.0+)?%\s+([\d.]+)(us|ms|s|m)$/)&.captures
        raise Errors, "wrk said nothing about #{percent} %:\n#{output}" unless number

        Float(number) * UNITS.fetch(unit)
      end
    end

    def initialize(server)
      @server = server
      @scenario = server.scenario
      write_requests
    end

    # The name of the program that measures.
    def program = wrk? ? "wrk" : "floor load"

    # Measures for so many seconds.
    def run(seconds)
      return floor("--seconds", seconds, seconds + PATIENCE) unless wrk?

      self.class.parse_wrk(Bench::Tool.capture(*wrk_command(seconds), seconds: seconds + PATIENCE))
    end

    # Before anything is measured, so that caches are filled and lazy things are loaded. Fails if an answer does.
    def warm_up = floor("--seconds", 0.3, PATIENCE)

    # Sends exactly so many.
    def send_requests(number) = floor("--requests", number, 60)

    private

    # Neither can it connect to a Unix socket, nor tell kinds of requests apart.
    def wrk? = !@scenario.unix && !@scenario.mixed?

    def floor(option, value, patience)
      kinds = @scenario.kinds.map { |name, (weight, _)| "#{name}=#{weight}=#{@server.place.path("request-#{name}")}" }
      output = Bench::Tool.capture(Contender::FLOOR, "load", @server.address.directive, option, value.to_s,
                                   "--connections", @scenario.connections.to_s, *keep_alive, *kinds, seconds: patience)
      self.class.parse_floor(output)
    end

    def keep_alive = @scenario.keep_alive ? ["--keep-alive"] : []

    def write_requests
      host = @server.address.unix? ? "localhost" : @server.address.directive
      @scenario.kinds.each do |name, (_, path)|
        @server.place.write("request-#{name}", @scenario.request(host, path))
      end
      @server.place.write("body", @scenario.body) if @scenario.body
    end

    def wrk_command(seconds)
      fields = { **@scenario.connection, **@scenario.fields }.flat_map { |name, value| ["-H", "#{name}: #{value}"] }
      ["wrk", "-t1", "-c#{@scenario.connections}", "-d#{seconds}s", "--latency", *fields, *script,
       "http://#{@server.address}#{@scenario.path}"]
    end

    def script
      return [] unless @scenario.body

      body = @server.place.path("body").dump
      ["-s", @server.place.write("post.lua", "wrk.method = \"POST\"\nwrk.body = io.open(#{body}):read(\"*a\")\n")]
    end
  end
end
