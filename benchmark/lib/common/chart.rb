# frozen_string_literal: true

require "cgi"

module Bench
  # Ratios to a baseline as a picture: bars in panels side by side, with the span of what each was in the middle of, and
  # a dashed line at 1.
  class Chart
    # Rows below a heading.
    Block = Struct.new(:heading, :rows)
    # @!attribute bars [Hash{Symbol => Bar, nil}] by panel
    Row = Struct.new(:label, :colour, :bars)
    # @!attribute ratio [#middle, #low, #high]
    # @!attribute text [String] beside it
    Bar = Struct.new(:ratio, :text)

    # Okabe and Ito's colours, which are told apart by all eyes; names are written beside each bar nevertheless.
    BLUE = "#0072B2"
    ORANGE = "#E69F00"
    GREEN = "#009E73"
    PINK = "#CC79A7"
    SKY = "#56B4E9"

    PANEL = 290
    GAP = 30
    BAR = 14
    ROW = 18
    TOP = 76

    # @param title [String] for those who cannot see it
    # @param heading [String] above it
    # @param subtitle [String] where and when this was measured
    # @param panels [Hash{Symbol => String}] their headings
    # @param blocks [Array<Block>]
    # @param labels [Integer] space for the labels left of the bars
    # @param figure [Integer] space for the text right of the longest bar
    def initialize(title:, heading:, subtitle:, panels:, blocks:, labels: 190, figure: 44)
      @title = title
      @heading = heading
      @subtitle = subtitle
      @panels = panels
      @blocks = blocks
      @labels = labels
      @figure = figure
    end

    def to_s
      <<~SVG
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{width} #{height}" width="#{width}" height="#{height}"
          font-family="sans-serif" font-size="12" fill="#222" role="img" aria-labelledby="title">
        <title id="title">#{CGI.escapeHTML(@title)}</title>
        <rect width="100%" height="100%" fill="#fff"/>
        #{text(16, 26, @heading, "font-size='15' font-weight='bold'")}
        #{text(16, 44, @subtitle, "fill='#555'")}
        #{[*headings, *@panels.keys.each_with_index.flat_map { |key, index| panel(key, index) }].join("\n")}
        </svg>
      SVG
    end

    private

    def width = @labels + (@panels.size * (PANEL + GAP))
    def height = TOP + @blocks.sum { |block| block_height(block) } + 16
    def block_height(block) = ROW * (block.rows.size + 1.5)

    # Where each row begins.
    def places
      @places ||= begin
        top = TOP.to_f
        @blocks.each_with_object({}.compare_by_identity) do |block, places|
          block.rows.each_with_index { |row, index| places[row] = top + (ROW * (index + 1)) }
          top += block_height(block)
        end
      end
    end

    def headings
      blocks = @blocks.map { |block| text(16, places[block.rows.first] - 6, block.heading, "font-weight='bold'") }
      blocks + places.map { |row, top| text(@labels - 8, top + 11, row.label, "text-anchor='end'") }
    end

    def panel(key, index)
      left = @labels + (index * (PANEL + GAP))
      scale = (PANEL - @figure) / highest(key)
      bars = places.filter_map { |row, top| row.bars[key]&.then { |bar| draw(bar, row.colour, left, top, scale) } }
      [text(left, TOP - 12, @panels.fetch(key), "font-weight='bold' fill='#555'"), *bars, base_line(left + scale)]
    end

    def highest(key) = [1.0, *places.keys.filter_map { |row| row.bars[key]&.ratio&.high }].max

    def base_line(position)
      x = position.round(1)
      "<line x1='#{x}' x2='#{x}' y1='#{TOP}' y2='#{height - 16}' stroke='#222' stroke-dasharray='3 3'/>"
    end

    def draw(bar, colour, left, top, scale)
      middle, low, high = bar.ratio.to_a.map { |value| (value * scale).round(1) }
      ["<rect x='#{left}' y='#{top}' width='#{middle}' height='#{BAR}' fill='#{colour}'/>",
       span(left + low, left + high, top + (BAR / 2)), text(left + high + 4, top + 11, bar.text)]
    end

    def span(low, high, vertical)
      "<path d='M#{low} #{vertical}H#{high}M#{low} #{vertical - 3}v6M#{high} #{vertical - 3}v6' stroke='#222'/>"
    end

    def text(horizontal, vertical, content, attributes = "")
      "<text x='#{horizontal.round(1)}' y='#{vertical.round(1)}' #{attributes}>#{CGI.escapeHTML(content)}</text>"
    end
  end
end
