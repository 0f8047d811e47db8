# frozen_string_literal: true

require_relative "statistics"

module Run
  # Results as text.
  class Report
    def initialize(result)
      @result = result
    end

    def to_s
      [@result.scenario.to_s, *table, *commands, *notes, *failures].join("\n")
    end

    private

    def table
      return [] if @result.names.empty?

      heads = ["", *@result.metrics.map(&:title)]
      rows = [heads, *@result.names.map { |name| [name, *@result.metrics.map { |metric| cell(name, metric) }] }]
      widths = rows.transpose.map { |column| column.map(&:size).max }
      rows.map { |row| "  #{row.zip(widths).map { |text, width| text.ljust(width) }.join("  ")}".rstrip }
    end

    # The figure, and its ratio to the baseline's with the lowest and the highest of all rounds.
    def cell(name, metric)
      spread = @result.spread(name, metric.key) or return "-"
      figure = format("%.#{metric.digits}f", spread.middle)
      return figure if name == @result.scenario.baseline

      [figure, ratio(@result.ratio(name, metric.key))].compact.join(" ")
    end

    def ratio(ratio)
      return unless ratio

      text = "×#{Run.brief(ratio.middle)}"
      return text if ratio.low == ratio.high

      "#{text} (#{Run.brief(ratio.low)}–#{Run.brief(ratio.high)})"
    end

    def commands = @result.commands.map { |name, command| "  #{name}: #{command}" }

    def notes = @result.notes.map { |note| "  note: #{note}" }

    def failures
      @result.failures.map { |name, message| "  FAILED: #{name}: #{message.gsub("\n", "\n    ")}" }
    end
  end
end
