# frozen_string_literal: true

require_relative "../scenario"

module Soak
  # The monitor is killed while workers hang in the application. Nobody may outlive it for long.
  class KillMonitor < Scenario
    NAME = "kill-monitor"
    WITHIN = 5.0
    HANGS = %w[sleep spin native].freeze
    RUSH = 1
    # To learn how long it takes, if it takes too long.
    LONGEST = 60

    private

    def perform
      with_server do |server|
        under_load(server) do
          hang(server)
          sleep RUSH
          count = server.children.size
          took = kill_monitor(server)
          report.figure("gone", format("%<n>d children after %<s>.2f s", n: count, s: took))
          report.expect("all children are gone within 5 s", took <= WITHIN, @late.join("; "))
        end
        expect_nothing_before_the_kill
        expect_refusal(server)
      end
    end

    # A server that has fewer workers than there are ways to hang keeps one to serve.
    def hang(server)
      HANGS.first([options.workers - 1, 1].max).each do |way|
        socket = Socket.new(server.address.family, Socket::SOCK_STREAM)
        socket.connect(server.address.sockaddr)
        socket.write("GET /hang/#{way} HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n")
        (@hanging ||= []) << socket
      end
      server.wait_until("the hanging requests begun") do
        server.children.count { |child| child.status.to_s.include?("processing: /hang") } == @hanging.size
      end
    end

    def kill_monitor(server)
      @killed_at = Bench.now
      report.event("killed the monitor")
      server.signal(:KILL)
      @late = []
      Bench.wait_until("all children gone", seconds: LONGEST) do
        survivors = server.survivors
        note_late(survivors) if @late.empty? && Bench.now > @killed_at + WITHIN
        server.ended? && survivors.empty?
      end
      Bench.now - @killed_at
    end

    def note_late(survivors)
      @late = survivors.filter_map { |pid| ProcessTable.describe(pid) }
    end

    def expect_nothing_before_the_kill
      early = report.tally.failures.select { |failure| failure.at < @killed_at }
      report.expect("no request failed before the kill", early.empty?, early.first&.to_s)
    end

    def expect_refusal(server)
      Bench::Client.new(server.address).get
      report.expect("afterwards connections are refused", false)
    rescue Bench::Client::Failed => e
      report.expect("afterwards connections are refused", e.reason == :refused, e.message)
    end
  end
end
