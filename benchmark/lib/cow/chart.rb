# frozen_string_literal: true

require_relative "../common/chart"
require_relative "result"

module Cow
  # Results as a picture: what all processes of each subject hold, as multiples of what one warm process holds.
  class Chart
    COLOURS = { "alone" => Bench::Chart::PINK, "forks" => Bench::Chart::ORANGE, "pitchfork-rs" => Bench::Chart::BLUE,
                "puma" => Bench::Chart::GREEN }.freeze
    PANELS = { pss: "memory (Pss)", code: "of it YJIT's machine code" }.freeze
    DIGITS = { pss: 1, code: 2 }.freeze

    # @param subtitle [String] where and when this was measured
    # @param labels [Labels]
    def initialize(results, subtitle, labels)
      @results = results
      @subtitle = subtitle
      @labels = labels
    end

    def to_s
      title = "Memory of all processes together, as multiples of one warm process (= 1); less is better"
      Bench::Chart.new(title:, heading: title, subtitle: @subtitle, panels:, blocks:, labels: 260, figure: 110).to_s
    end

    private

    # Without YJIT there is no second one.
    def panels = PANELS.select { |metric, _| @results.any? { |one| one.keys.any? { |key| one.ratio(key, metric) } } }

    def blocks
      blocks = @results.map do |result|
        application = result.application
        Bench::Chart::Block.new("#{application.name}: #{application.title}", rows(result))
      end
      blocks.reject { |block| block.rows.empty? }
    end

    def rows(result)
      result.keys.select { |key| result.ratio(key, :pss) }.map do |key|
        bars = PANELS.keys.to_h { |metric| [metric, bar(result, key, metric)] }
        Bench::Chart::Row.new(@labels.to_s(key), COLOURS.fetch(key.subject), bars)
      end
    end

    def bar(result, key, metric)
      ratio = result.ratio(key, metric) or return
      megabytes = format("%.#{DIGITS.fetch(metric)}f MB", result.spread(key, metric).middle / 1024.0)
      Bench::Chart::Bar.new(ratio, "#{megabytes}, ×#{format("%.2f", ratio.middle)}")
    end
  end
end
