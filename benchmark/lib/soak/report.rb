# frozen_string_literal: true

require_relative "../common/clock"

module Soak
  # What a scenario found, and what it expected.
  class Report
    Expectation = Struct.new(:text, :held, :detail)

    FAILURES_SHOWN = 20
    LABEL = 26

    attr_reader :name, :expectations
    attr_accessor :tally, :began

    def initialize(name)
      @name = name
      @began = Bench.now
      @figures = []
      @events = []
      @expectations = []
    end

    def figure(label, value)
      @figures << [label, value]
    end

    # Something that was done to the server, to be seen beside the failures it may have caused.
    def event(text)
      @events << [Bench.now, text]
    end

    def expect(text, held, detail = nil)
      @expectations << Expectation.new(text, held ? true : false, detail)
      held
    end

    def ok? = @expectations.any? && @expectations.all?(&:held)
    def verdict = ok? ? "ok" : "FAILED"

    def to_s
      lines = [*tally_lines, *figure_lines, *failure_lines, *expectation_lines]
      ["== #{name} ==", *lines, "#{name}: #{verdict}"].join("\n")
    end

    def row
      counts = tally ? [tally.requests, tally.lost, tally.refused] : ["-"] * 3
      broken = @expectations.reject(&:held).map { |expectation| expectation.text.lines.first.chomp }
      [name, *counts, [verdict, *broken].join("; ")]
    end

    def self.table(reports)
      rows = [%w[scenario requests lost refused verdict], *reports.map { |report| report.row.map(&:to_s) }]
      widths = rows.transpose.map { |column| column.map(&:size).max }
      rows.map { |row| row.zip(widths).map { |cell, width| cell.ljust(width) }.join("  ").rstrip }.join("\n")
    end

    private

    def tally_lines
      return [] unless tally

      [line("requests", "#{tally.requests} in #{tally.duration.round(1)} s, #{tally.rate.round}/s"),
       line("failed", tally.failed_count.zero? ? "0" : "#{tally.failed_count}: #{tally.reasons}"),
       line("latency", tally.latency_line)]
    end

    def figure_lines = @figures.map { |label, value| line(label, value) }

    # A refusal is an answer, and a drain has one for each client.
    def failure_lines
      return [] unless tally

      shown = tally.failures.reject { |failure| failure.reason == :refused }
      lines = shown.first(FAILURES_SHOWN).map do |failure|
        format("  %8.3<at>f s  %<failure>s%<before>s", at: failure.at - began, failure: failure,
                                                       before: before(failure))
      end
      lines << "  ... and #{shown.size - FAILURES_SHOWN} more" if shown.size > FAILURES_SHOWN
      lines
    end

    def before(failure)
      at, text = @events.reverse_each.find { |event_at, _| event_at <= failure.at }
      format("; %<ms>.1f ms after: %<text>s", ms: (failure.at - at) * 1000, text: text) if at
    end

    def expectation_lines
      @expectations.map do |expectation|
        mark = expectation.held ? "ok  " : "FAIL"
        detail = " (#{expectation.detail})" unless expectation.detail.to_s.empty?
        "  #{mark}  #{expectation.text}#{detail}"
      end
    end

    def line(label, value) = "  #{label.ljust(LABEL)} #{value}"
  end
end
