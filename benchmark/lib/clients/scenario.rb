# frozen_string_literal: true

require "json"
require_relative "../common/client"
require_relative "../soak/process_table"
require_relative "../soak/report"
require_relative "../soak/server"
require_relative "crowd"
require_relative "load"

module Clients
  # What all scenarios here have in common: a server of two workers, and its report.
  class Scenario
    APP = File.expand_path("app", __dir__)
    WORKERS = 2

    # Figures for the JSON file.
    attr_reader :record

    # @param options [Options]
    def initialize(options)
      @options = options
      @report = Soak::Report.new(options.name)
      @record = { scenario: options.name }
    end

    # The report. A scenario that gets stuck has failed.
    def run
      puts "#{@report.name} ..."
      Soak::Server.run(workers: WORKERS, app: APP, environment:) do |server|
        perform(server)
        server.keep = options.keep || !report.ok?
      end
      report
    rescue Bench::Stuck => e
      report.expect(e.message, false)
      report
    end

    private

    attr_reader :options, :report

    # Readers take so little that the server sees no progress. At a stop it waits for them as long as this.
    def environment
      { "CLIENTS_RESPONSE" => options.response.to_s, "CLIENTS_WRITE_TIMEOUT" => (options.drain? ? 25 : 120).to_s }
    end

    def load(server, **settings, &)
      Load.during(server.address, connections: options.connections, pause: options.pause, **settings, &)
    end

    def note(key, label, text, value)
      report.figure(label, text)
      record[key] = value
    end

    def note_tally(key, label, tally)
      p50, p99 = [0.5, 0.99].map { |share| tally.latencies.quantile(share) * 1000 }
      note(key, label, "#{tally.requests} requests, #{tally.failed_count} failed; #{tally.latency_line}",
           requests: tally.requests, failed: tally.failed_count, reasons: tally.reasons, connects: tally.connects,
           closed_idle: tally.closed_idle, p50_ms: p50, p99_ms: p99, max_ms: tally.latencies.max * 1000)
    end

    # What the reactor counts.
    def connections(server)
      JSON.parse(Bench::Client.new(server.address).get("/connections").body, symbolize_names: true)
    end

    def expect_clean_end(server)
      server.stop
      report.expect("exit status 0 after QUIT", server.status&.exitstatus&.zero?, server.status.inspect)
      report.expect("nothing left running", server.survivors.empty?)
    end

    # The monitor complains of those that were killed on purpose.
    def expect_no_complaints(server)
      complaints = server.complaints
      complaints = complaints.grep_v(/reaped .*SIGKILL/) if options.kill_workers? || options.kill_reactor?
      report.expect("no error in the log", complaints.empty?, [complaints.size, *complaints.first].join(": "))
    end
  end
end
