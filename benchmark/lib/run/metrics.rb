# frozen_string_literal: true

require_relative "scenario"

module Run
  # A thing that is measured.
  #
  # @!attribute key [Symbol]
  # @!attribute title [String] with its unit
  # @!attribute digits [Integer] behind the point
  Metric = Struct.new(:key, :title, :digits)

  METRICS = [
    Metric.new(:rate, "requests/s", 0), Metric.new(:p50, "p50 in µs", 0), Metric.new(:p99, "p99 in µs", 0),
    Metric.new(:processor, "CPU µs/request", 1), Metric.new(:calls, "system calls/request", 2)
  ].freeze

  # Of a load of several kinds of requests.
  MIXED_METRICS = [
    *UNEVEN.keys.map { |kind| Metric.new(:"p99_#{kind}", "p99 of #{kind} in µs", 0) },
    Metric.new(:busiest, "busiest process, % of CPU", 0)
  ].freeze
end
