# frozen_string_literal: true

require_relative "latencies"

module Soak
  # A request that did not get its answer. `established` tells whether there ever was a connection; `took` is the time
  # from its beginning to the failure at `at`.
  Failure = Struct.new(:at, :client, :reason, :detail, :established, :took) do
    def to_s
      "client #{client}: #{reason}#{" (#{detail})" if detail}, #{"not " unless established}connected, " \
        "after #{format("%.1f", took * 1000)} ms"
    end
  end

  # What became of the requests of one client, or of many.
  class Tally
    # The count is exact; of a flood only so many are told in detail.
    DETAILS = 1_000

    attr_reader :ok, :failed, :failures, :latencies
    attr_accessor :duration

    def initialize
      @ok = 0
      @failed = Hash.new(0)
      @failures = []
      @latencies = Latencies.new
      @duration = 0.0
    end

    def count_ok(seconds)
      @ok += 1
      @latencies.add(seconds)
    end

    def count_failure(failure)
      @failed[[failure.reason, failure.established]] += 1
      @failures << failure if @failures.size < DETAILS
    end

    # Adds another one up, that of a client at the same time or that of a run after this one.
    def merge(other, after: false)
      @ok += other.ok
      @failed.merge!(other.failed) { |_, ours, theirs| ours + theirs }
      @failures = (@failures + other.failures).sort_by(&:at)
      @latencies.merge(other.latencies)
      @duration = after ? @duration + other.duration : [@duration, other.duration].max
      self
    end

    def requests = ok + failed_count
    def failed_count = failed.values.sum
    def rate = duration.positive? ? requests / duration : 0.0

    # Connections that were made and got no proper answer.
    def lost = failed.sum { |(_, established), count| established ? count : 0 }

    def refused = failed.fetch([:refused, false], 0)

    # Neither connected nor refused: nobody told them anything.
    def unanswered = failed_count - lost - refused

    def reasons
      failed.map { |(reason, established), count| "#{count} #{reason}#{" before connecting" unless established}" }
            .join(", ")
    end

    def latency_line
      p50, p99 = [0.5, 0.99].map { |share| @latencies.quantile(share) * 1000 }
      format("p50 %<p50>.2f ms, p99 %<p99>.2f ms, max %<max>.1f ms", p50: p50, p99: p99, max: @latencies.max * 1000)
    end
  end
end
