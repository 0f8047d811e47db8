# frozen_string_literal: true

require_relative "scenario"

module Clients
  # One of two workers is busy in the application for seconds, and nobody waits for it.
  class Busy < Scenario
    BUSY = 5
    # How long the load goes on before and after.
    MARGIN = 1.0
    SHOWN = 8

    private

    def perform(server)
      alone = load(server) { sleep BUSY }
      report.began = Bench.now
      beside = load(server) { occupy(server) }
      report.tally = beside
      note_tally(:alone, "alone", alone)
      note_tally(:beside, "beside a busy worker", beside)
      note_long(beside)
      expect_clean_end(server)
      expect_no_complaints(server)
      expectations(*[alone, beside].map { |tally| (tally.latencies.max * 1000).round(1) })
    end

    def expectations(alone, beside)
      tally = report.tally
      report.expect("no request failed", tally.failed_count.zero?, tally.reasons)
      most = Load::Tally::LONG * 1000
      report.expect("no request took longer than #{most.round} ms", beside <= most, "#{beside} ms; alone #{alone} ms")
    end

    # When the worker became busy is 0.
    def note_long(tally)
      long = tally.long.map { |began, took| { at_s: (began - @occupied_at).round(3), ms: (took * 1000).round(1) } }
      text = long.first(SHOWN).map { |one| "#{one[:ms]} ms at #{one[:at_s]} s" }
      note(:long, "long requests", [long.size, *text].join(", "), long)
    end

    def occupy(server)
      sleep MARGIN
      @occupied_at = Bench.now
      report.event("asked for something that takes #{BUSY} s")
      Bench::Client.new(server.address, timeout: BUSY + 5).get("/sleep/#{BUSY}")
      sleep MARGIN
    end
  end
end
