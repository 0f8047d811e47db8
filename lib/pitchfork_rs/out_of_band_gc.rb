# frozen_string_literal: true

require_relative "compatibility"

module PitchforkRs
  # Collects the garbage of a worker between two requests, so that no request has to wait for it.
  #
  # Ruby collects when one of its heaps is full, or when enough memory was allocated beside them. It tells how much is
  # missing, and the last requests tell how much of that the next one may take. So a collection is made in the last
  # pause before Ruby would make it, and in no other.
  # @api private
  class OutOfBandGC
    # After so many requests without a pause, a major collection that is wanted is made between two of them.
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
      @since_collection = @since_pause = 0
      @taken = []
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
      @since_collection += 1
      @since_pause += 1
      collect if (@since_pause % PATIENCE).zero? && wanted?
    end

    # For whenever there is nothing to do.
    def pause
      complete
      learn if @since_pause.positive?
      collect if wanted? || scarce?
    end

    private

    # Completes a collection that Ruby has begun, which the next requests would have to do. Nothing else does only that.
    def complete
      GC.enable unless GC.latest_gc_info(:state) == :none || GC.disable
    end

    def wanted?
      Compatibility.major_collection_wanted? || (@every && @since_collection >= @every)
    end

    # Whether there may be too little for the next request, which may be twice as large as those before.
    def scarce?
      left = [*Compatibility.heap_room, GC.stat(:malloc_increase_bytes_limit) - GC.stat(:malloc_increase_bytes)]
      left.zip(@taken).any? { |room, taken| room < 2 * taken.to_i }
    end

    def collect
      Compatibility.collect_garbage
      @since_collection = 0
      take_stock
    end

    # A large request is remembered for some time. Of the memory beside the heaps, only what came after a collection is
    # known.
    def learn
      before = @stock
      before = [*before[0...-1], 0] if @collections != GC.count
      @taken = take_stock.zip(before, @taken).map do |now, was, taken|
        [(now - was) / @since_pause, taken.to_i * 7 / 8].max
      end
      @since_pause = 0
    end

    # What was allocated so far: objects in each heap, and bytes since the last collection.
    def take_stock
      @collections = GC.count
      @stock = [*Compatibility.heap_allocations, GC.stat(:malloc_increase_bytes)]
    end
  end
end
