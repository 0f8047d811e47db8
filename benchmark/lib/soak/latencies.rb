# frozen_string_literal: true

module Soak
  # A histogram of times whose memory does not grow: 16 buckets for each power of two of microseconds, so that a
  # quantile is off by 6 % at most. The maximum is exact.
  class Latencies
    BUCKETS = 1024
    EXACT_BITS = 5
    PER_POWER = 16

    attr_reader :count, :max

    def initialize
      @buckets = Array.new(BUCKETS, 0)
      @count = 0
      @max = 0.0
    end

    def add(seconds)
      @max = seconds if seconds > @max
      @count += 1
      microseconds = (seconds * 1_000_000).to_i
      shift = microseconds.bit_length - EXACT_BITS
      shift = 0 if shift.negative?
      @buckets[(shift * PER_POWER) + (microseconds >> shift)] += 1
    end

    def merge(other)
      other.buckets.each_with_index { |count, index| @buckets[index] += count }
      @count += other.count
      @max = [@max, other.max].max
    end

    # The time within which this share of the requests was answered, in seconds.
    def quantile(share)
      wanted = (@count * share).ceil
      seen = 0
      index = @buckets.index { |count| (seen += count) >= wanted } || 0
      upper_bound(index) / 1_000_000.0
    end

    protected

    attr_reader :buckets

    private

    def upper_bound(index)
      return index if index < 2 * PER_POWER

      shift = (index / PER_POWER) - 1
      ((index - (shift * PER_POWER) + 1) << shift) - 1
    end
  end
end
