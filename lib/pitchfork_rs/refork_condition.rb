# frozen_string_literal: true

module PitchforkRs
  # Conditions that decide when a worker is warm enough to become the mold of the next generation. Any object with
  # `met?(worker, logger)` can be one; each worker asks its own copy between two requests.
  module ReforkCondition
    @backoff_delay = 10.0

    class << self
      # @return [Numeric] seconds for which a condition stays unmet after an attempt
      attr_accessor :backoff_delay
    end

    # Met once a worker has served a number of requests that depends on its generation.
    class RequestsCount
      # @param limits [Array<Integer, false, nil>] requests per generation, the first for generation 0; the last stands
      #   for all later generations, and a `false` or `nil` for never
      # @raise [ArgumentError] if it is not an Array
      def initialize(limits)
        raise ArgumentError, "limits must be an Array, got #{limits.inspect}" unless limits.is_a?(Array)

        @limits = limits.dup.freeze
        @backoff_until = nil
      end

      # @param worker [#generation, #requests_count, #to_log]
      # @param logger [#info] told when the answer is yes
      # @return [Boolean] whether it is time to refork
      def met?(worker, logger)
        limit = @limits.fetch(worker.generation) { @limits.last }
        return false if !limit || worker.requests_count < limit || backoff?

        logger.info("#{worker.to_log} processed #{worker.requests_count} requests, triggering a refork")
        true
      end

      # Keeps {#met?} from saying yes for a while, so that a failed attempt is not repeated at every request.
      #
      # @param seconds [Numeric]
      # @return [void]
      def backoff!(seconds = ReforkCondition.backoff_delay)
        @backoff_until = now + seconds
      end

      # @return [Boolean] whether the time set by {#backoff!} is still running
      def backoff?
        return false unless @backoff_until
        return true if now < @backoff_until

        @backoff_until = nil
        false
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{@limits.inspect}>"
      end

      private

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
