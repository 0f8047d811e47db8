# frozen_string_literal: true

require_relative "../run/statistics"
require_relative "sample"

module Cow
  # What was measured with one application: of each subject and stage a list of samples, one for each round.
  class Result
    # What is shown in a line.
    Key = Struct.new(:subject, :stage)

    # Whose figures are 1.
    ONE = Key.new("alone", :warm).freeze

    attr_reader :application, :failures, :notes

    def initialize(application)
      @application = application
      @rounds = Hash.new { |hash, key| hash[key] = [] }
      @failures = {}
      @notes = []
    end

    # @param stages [Hash{Symbol => Sample}]
    def add(round, subject, stages)
      stages.each { |stage, sample| @rounds[Key.new(subject, stage)][round] = sample }
    end

    # What has been measured, in the order of subjects and stages.
    def keys = @rounds.keys.reject { |key| failures.key?(key.subject) }

    # One sample for the details: the one whose memory is in the middle of all rounds.
    def typical(key)
      samples = @rounds[key].compact.sort_by { |sample| sample.total(:pss) }
      samples[(samples.size - 1) / 2]
    end

    # @param metric [Symbol] of Sample#total
    # @return [Run::Spread, nil] in KiB
    def spread(key, metric)
      values = values(key, metric).compact
      Run::Spread.of(values) if values.any?
    end

    # @return [Run::Spread, nil] of the ratios within each round
    def ratio(key, metric, to: ONE)
      Run::Spread.of_ratios(values(key, metric), values(to, metric)) if keys.include?(to)
    end

    # The bare forks in the same stage.
    # @return [Key, nil] nil for what is no copy of a warm process
    def forks(key)
      other = Key.new("forks", key.stage)
      other if other != key && key.subject == "pitchfork-rs" && keys.include?(other)
    end

    def to_h
      { name: application.name, title: application.title, failures:, notes:,
        figures: keys.map { |key| { **key.to_h, **figures(key) } } }
    end

    private

    def figures(key)
      metrics = %i[pss private_dirty code].to_h do |metric|
        [metric, { spread_kib: spread(key, metric)&.to_h, to_one_warm_process: ratio(key, metric)&.to_h,
                   to_bare_forks: forks(key) && ratio(key, metric, to: forks(key))&.to_h }]
      end
      { **metrics, rounds: @rounds[key].map { |sample| sample&.to_h } }
    end

    def values(key, metric)
      @rounds.fetch(key, []).map { |sample| sample&.total(metric) }
    end
  end
end
