# frozen_string_literal: true

# A tool that measures servers against a floor.
module Run
  module_function

  # A ratio with as many digits as it is worth.
  def brief(ratio) = format(ratio < 10 ? "%.2f" : "%.1f", ratio)

  # A middle value, and the lowest and highest of all.
  Spread = Struct.new(:middle, :low, :high) do
    # @param values [Array<Numeric>] at least one
    def self.of(values)
      sorted = values.sort
      half = sorted.size / 2
      middle = sorted.size.odd? ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2.0
      new(middle, sorted.first, sorted.last)
    end

    # Of the ratios of values to those of a baseline, round by round: what slows the machine down for a while slows
    # down both. Rounds that one of them lacks, or in which the baseline is 0, do not count.
    # @return [Spread, nil] nil if no round counts
    def self.of_ratios(values, baseline)
      ratios = values.zip(baseline).filter_map { |value, base| value.fdiv(base) if value && base&.nonzero? }
      of(ratios) if ratios.any?
    end
  end
end
