# frozen_string_literal: true

require "cgi"
require_relative "statistics"

module Run
  # Results as a picture: for each server and scenario the ratio to the baseline, with the span of all rounds.
  class Chart
    # Okabe and Ito's colours, which are told apart by all eyes; names are written beside each bar nevertheless.
    COLOURS = { "pitchfork-rs" => "#0072B2", "unicorn" => "#E69F00", "puma" => "#009E73",
                "pitchfork" => "#CC79A7" }.freeze
    OTHER_COLOUR = "#56B4E9"
    PANELS = { rate: "requests/s: more is better", p99: "p99: less is better",
               processor: "CPU time per request: less is better" }.freeze
    LABELS = 190
    PANEL = 290
    GAP = 30
    BAR = 14
    ROW = 18
    TOP = 76
    # Space right of the longest bar for its figure.
    FIGURE = 44

    Row = Struct.new(:y, :result, :name)

    # @param subtitle [String] where and when this was measured
    def initialize(results, subtitle)
      @results = results.select { |result| compared(result).any? }
      @subtitle = subtitle
    end

    def to_s
      <<~SVG
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{width} #{height}" width="#{width}" height="#{height}"
          font-family="sans-serif" font-size="12" fill="#222" role="img" aria-labelledby="title">
        <title id="title">Servers in comparison, as ratios to a floor that does nothing but its system calls</title>
        <rect width="100%" height="100%" fill="#fff"/>
        #{text(16, 26, "Ratios to the floor (= 1), a server that does nothing but its system calls",
               "font-size='15' font-weight='bold'")}
        #{text(16, 44, @subtitle, "fill='#555'")}
        #{[*headings, *PANELS.keys.each_with_index.flat_map { |metric, index| panel(metric, index) }].join("\n")}
        </svg>
      SVG
    end

    private

    def width = LABELS + (PANELS.size * (PANEL + GAP))
    def height = TOP + @results.sum { |result| block_height(result) } + 16
    def block_height(result) = ROW * (compared(result).size + 1.5)

    # Who has a ratio to somebody else.
    def compared(result)
      (result.names - [result.scenario.baseline]).select { |name| result.ratio(name, :rate) }
    end

    def rows
      @rows ||= begin
        y = TOP.to_f
        @results.flat_map do |result|
          block = compared(result).each_with_index.map { |name, index| Row.new(y + (ROW * (index + 1)), result, name) }
          y += block_height(result)
          block
        end
      end
    end

    def headings
      scenarios = rows.group_by(&:result).map do |result, block|
        scenario = result.scenario
        base = " (to #{scenario.baseline})" unless scenario.baseline == "floor"
        text(16, block.first.y - 6, "#{scenario.name}: #{scenario.title}#{base}", "font-weight='bold'")
      end
      names = rows.map { |row| text(LABELS - 8, row.y + 11, row.name, "text-anchor='end'") }
      scenarios + names
    end

    def panel(metric, index)
      left = LABELS + (index * (PANEL + GAP))
      scale = (PANEL - FIGURE) / highest(metric)
      [text(left, TOP - 12, PANELS.fetch(metric), "font-weight='bold' fill='#555'"),
       *rows.flat_map { |row| bar(row, left, scale, metric) }, base_line(left + scale)]
    end

    def highest(metric)
      [1.0, *rows.filter_map { |row| row.result.ratio(row.name, metric)&.high }].max
    end

    def base_line(position)
      x = position.round(1)
      "<line x1='#{x}' x2='#{x}' y1='#{TOP}' y2='#{height - 16}' stroke='#222' stroke-dasharray='3 3'/>"
    end

    def bar(row, left, scale, metric)
      ratio = row.result.ratio(row.name, metric) or return []
      middle, low, high = ratio.to_a.map { |value| (value * scale).round(1) }
      colour = COLOURS.fetch(row.name, OTHER_COLOUR)
      ["<rect x='#{left}' y='#{row.y}' width='#{middle}' height='#{BAR}' fill='#{colour}'/>",
       span(left + low, left + high, row.y + (BAR / 2)), text(left + high + 4, row.y + 11, Run.brief(ratio.middle))]
    end

    def span(low, high, vertical)
      "<path d='M#{low} #{vertical}H#{high}M#{low} #{vertical - 3}v6M#{high} #{vertical - 3}v6' stroke='#222'/>"
    end

    def text(horizontal, vertical, content, attributes = "")
      "<text x='#{horizontal.round(1)}' y='#{vertical.round(1)}' #{attributes}>#{CGI.escapeHTML(content)}</text>"
    end
  end
end
