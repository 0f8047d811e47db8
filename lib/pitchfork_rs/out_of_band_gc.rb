# frozen_string_literal: true

require_relative "compatibility"

module PitchforkRs
  # Collects the garbage of a worker between two requests, so that no request has to wait for it.
  #
  # Ruby collects when a heap is full, or when enough memory was allocated outside of the heaps. How much is missing until
  # then can be asked, and what a request takes of it is learned from the last ones. So a collection is made in a pause
  # that may be the last one before Ruby makes it, and in no other.
  # @api private
  class OutOfBandGC
    # Who has served so many requests without a pause does not wait for one any longer, if Ruby wants a major collection.
    PATIENCE = 100
    private_constant :PATIENCE

    # A process that the application forks, such as one that computes something for an hour, has no pauses.
    module FullMarksInChildren
      def _fork
        super.tap { |pid| Compatibility.allow_full_marks(true) if pid.zero? }
      end
    end
    private_constant :FullMarksInChildren

    # @param every [Integer, nil] after so many requests a collection is made in any case
    def initialize(every)
      @every = every
      @requests = @without_pause = 0
      @need = []
      take_stock
    end

    # Keeps major collections away from requests, where Ruby lets us.
    def begin
      Process.singleton_class.prepend(FullMarksInChildren)
      Compatibility.allow_full_marks(false)
    end

    # Leaves garbage to Ruby again.
    def end
      Compatibility.allow_full_marks(true)
    end

    # For after each request.
    def count_request
      @requests += 1
      @without_pause += 1
      return if @without_pause < PATIENCE

      @without_pause = 0
      collect if wanted?
    end

    # For each time that there is nothing to do.
    def pause
      @without_pause = 0
      finish
      learn
      collect if wanted? || scarce?
    end

    private

    # Completes a collection that Ruby has begun, of which the next request would have to do more. There is no other
    # method that does it and nothing else.
    def finish
      GC.enable unless GC.latest_gc_info(:state) == :none || GC.disable
    end

    def wanted?
      Compatibility.major_collection_wanted? || (@every && @requests >= @every)
    end

    # Whether the next request might need more than there is. It may be twice as large as those before.
    def scarce?
      @left.zip(@need).any? { |left, need| left < 2 * need.to_i }
    end

    # A minor collection may find that a major one is wanted.
    def collect
      GC.start(full_mark: false) unless Compatibility.major_collection_wanted?
      GC.start if Compatibility.major_collection_wanted?
      @requests = 0
      take_stock
    end

    # What a collection has freed meanwhile hides what the requests have taken.
    def learn
      before = @left
      requests = @requests - @looked_at
      collections = @collections
      take_stock
      return if requests.zero? || @collections != collections

      @need = @left.zip(before, @need).map do |left, was, need|
        [(was - left) / requests, need.to_i * 7 / 8].max
      end
    end

    def take_stock
      @collections = GC.count
      @looked_at = @requests
      @left = [*Compatibility.heap_room, GC.stat(:malloc_increase_bytes_limit) - GC.stat(:malloc_increase_bytes)]
    end
  end
end
