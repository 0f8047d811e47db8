# frozen_string_literal: true

require_relative "../common/chart"
require_relative "statistics"

module Run
  # Results as a picture: for each server and scenario the ratio to the baseline, with the span of all rounds.
  class Chart
    COLOURS = { "pitchfork-rs" => Bench::Chart::BLUE, "unicorn" => Bench::Chart::ORANGE,
                "puma" => Bench::Chart::GREEN, "pitchfork" => Bench::Chart::PINK }.freeze
    OTHER_COLOUR = Bench::Chart::SKY
    PANELS = { rate: "requests/s: more is better", p99: "p99: less is better",
               processor: "CPU time per request: less is better" }.freeze

    # @param subtitle [String] where and when this was measured
    def initialize(results, subtitle)
      @results = results
      @subtitle = subtitle
    end

    def to_s
      blocks = @results.map { |result| Bench::Chart::Block.new(heading(result.scenario), rows(result)) }
      Bench::Chart.new(
        title: "Servers in comparison, as ratios to a floor that does nothing but its system calls",
        heading: "Ratios to the floor (= 1), a server that does nothing but its system calls",
        subtitle: @subtitle, panels: PANELS, blocks: blocks.reject { |block| block.rows.empty? }
      ).to_s
    end

    private

    def heading(scenario)
      base = " (to #{scenario.baseline})" unless scenario.baseline == "floor"
      "#{scenario.name}: #{scenario.title}#{base}"
    end

    # Of those who have a ratio to somebody else.
    def rows(result)
      names = (result.names - [result.scenario.baseline]).select { |name| result.ratio(name, :rate) }
      names.map do |name|
        bars = PANELS.keys.to_h { |metric| [metric, bar(result.ratio(name, metric))] }
        Bench::Chart::Row.new(name, COLOURS.fetch(name, OTHER_COLOUR), bars)
      end
    end

    def bar(ratio)
      Bench::Chart::Bar.new(ratio, Run.brief(ratio.middle)) if ratio
    end
  end
end
