# frozen_string_literal: true

require "json"

module Run
  # What is asked of a server, by how many connections, and what it has to answer.
  #
  # @!attribute name [String] as on the command line
  # @!attribute title [String] what it is about
  # @!attribute kinds [Hash{String => Array(Integer, String)}] weight and path of each kind of request
  # @!attribute fields [Hash{String => String}] header fields of the request
  # @!attribute body [String, nil] of the request, which is a POST then
  # @!attribute answer [String] the body of a right response
  # @!attribute keep_alive [Boolean] whether connections stay open for one request after the other
  # @!attribute pause [Integer] how long the application sleeps, in milliseconds
  # @!attribute baseline [String] the server whose figures are 1
  Scenario = Struct.new(:name, :title, :kinds, :fields, :body, :answer, :workers, :connections, :unix, :pause,
                        :baseline, :keep_alive, keyword_init: true) do
    # @param path [String] where all requests are alike
    def initialize(path: nil, kinds: { "all" => [1, path] }, fields: {}, answer: "hello\n", workers: 1, connections: 4,
                   unix: false, pause: 0, baseline: "floor", keep_alive: false, **rest)
      super(kinds:, fields:, answer:, workers:, connections:, unix:, pause:, baseline:, keep_alive:, **rest)
    end

    def path = kinds.values.first.last
    def mixed? = kinds.size > 1

    # A whole request, as wrk sends it.
    def request(host, path = self.path)
      lines = { "Host" => host, **connection, **fields }
      lines["Content-Length"] = body.bytesize if body
      head = ["#{body ? "POST" : "GET"} #{path} HTTP/1.1", *lines.map { |name, value| "#{name}: #{value}" }]
      "#{head.join("\r\n")}\r\n\r\n#{body}"
    end

    # What is said about the connection.
    def connection = keep_alive ? {} : { "Connection" => "close" }

    def to_s
      "#{name}: #{title}; #{workers} worker#{"s" if workers > 1}, #{connections} connections"
    end
  end

  LARGE = "0123456789abcdef" * 64 * 100

  COOKIE = Array.new(6) { |number| "cookie_#{number}=#{"0123456789abcdef" * 4}" }.join("; ")

  FIELDS = {
    "User-Agent" => "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept" => "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language" => "en-GB,en;q=0.7,de;q=0.3", "Accept-Encoding" => "gzip, deflate, br",
    **(1..15).to_h { |number| ["X-Field-#{number}", "value of the field number #{number}"] },
    "Cookie" => COOKIE
  }.freeze

  AMOUNTS = Array.new(128) { |id| { id: id, name: "entry number #{id}", note: "n" * 20, amount: id * 7 } }
  ORDER = JSON.generate(AMOUNTS).freeze

  # By processor time in microseconds. One in two hundred is long, so that the 99th percentile is that of requests
  # which had to wait for others.
  UNEVEN = { "quick" => [180, "/busy/200"], "middle" => [19, "/busy/2000"], "long" => [1, "/busy/30000"] }.freeze

  SCENARIOS = [
    Scenario.new(name: "hello", title: "a short answer", path: "/hello"),
    Scenario.new(name: "headers", title: "20 header fields, one of them with 6 cookies", path: "/headers",
                 fields: FIELDS, answer: "value of the field number 15 #{COOKIE.bytesize}\n"),
    Scenario.new(name: "json", title: "#{ORDER.bytesize} bytes of JSON posted", path: "/json",
                 fields: { "Content-Type" => "application/json" }, body: ORDER,
                 answer: "#{AMOUNTS.sum { |entry| entry[:amount] }}\n"),
    Scenario.new(name: "large", title: "100 KiB in one piece", path: "/large", answer: LARGE),
    Scenario.new(name: "pieces", title: "100 KiB in 100 pieces", path: "/pieces", answer: LARGE),
    Scenario.new(name: "file", title: "a file of 100 KiB, by to_path", path: "/file", answer: LARGE),
    Scenario.new(name: "unix", title: "a short answer over a Unix socket", path: "/hello", unix: true),
    Scenario.new(name: "workers", title: "a short answer of 16 workers", path: "/hello", workers: 16, connections: 32),
    Scenario.new(name: "keepalive", title: "a short answer on connections that stay open", path: "/hello",
                 keep_alive: true),
    Scenario.new(name: "keepalive-many", title: "the same of 16 workers", path: "/hello", keep_alive: true, workers: 16,
                 connections: 64),
    Scenario.new(name: "slow", title: "an application that sleeps for 5 ms", path: "/sleep", pause: 5),
    Scenario.new(name: "fairness", title: "processor time of 0.2 ms (90 %), 2 ms and 30 ms (0.5 %)", kinds: UNEVEN,
                 workers: 8, connections: 16, baseline: "unicorn")
  ].freeze

  # All but `fairness`, which keeps the processors busy with Ruby, so that the other figures would tell nothing.
  USUAL = SCENARIOS.reject(&:mixed?).freeze
end
