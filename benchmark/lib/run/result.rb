# frozen_string_literal: true

require_relative "metrics"
require_relative "statistics"

module Run
  # What was measured in one scenario: for each server a list of rounds, each of them a Hash of figures by metric.
  class Result
    attr_reader :scenario, :rounds, :failures, :notes, :calls, :commands

    def initialize(scenario)
      @scenario = scenario
      @rounds = Hash.new { |hash, name| hash[name] = [] }
      @calls = {}
      @commands = {}
      @failures = {}
      @notes = []
    end

    def metrics
      [*METRICS, *(MIXED_METRICS if scenario.mixed?)].select { |metric| names.any? { |name| spread(name, metric.key) } }
    end

    # The servers that have figures, the baseline first.
    def names = rounds.keys.reject { |name| failures.key?(name) }.sort_by { |name| name == scenario.baseline ? 0 : 1 }

    # @return [Spread, nil] of the figures themselves
    def spread(name, metric)
      values = values(name, metric).compact
      Spread.of(values) if values.any?
    end

    # @return [Spread, nil] of their ratios to the baseline's
    def ratio(name, metric)
      return if failures.key?(scenario.baseline) || !rounds.key?(scenario.baseline)

      Spread.of_ratios(values(name, metric), values(scenario.baseline, metric))
    end

    def to_h
      servers = names.to_h do |name|
        [name, { command: commands[name], figures: figures(name), system_calls: calls[name] }]
      end
      { **scenario.to_h.slice(:name, :title, :workers, :connections, :baseline), servers:, failures:, notes: }
    end

    private

    def figures(name)
      metrics.map(&:key).to_h do |key|
        [key, { values: values(name, key), spread: spread(name, key)&.to_h, ratio: ratio(name, key)&.to_h }]
      end
    end

    # Calls are counted once, not in each round.
    def values(name, metric)
      return rounds.fetch(name, []).map { |round| round[metric] } unless metric == :calls

      calls.key?(name) ? [calls[name].values.sum] : []
    end
  end
end
