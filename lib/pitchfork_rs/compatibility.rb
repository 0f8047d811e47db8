# frozen_string_literal: true

module PitchforkRs
  # How the Rubies and the releases of Rack that are supported differ, as far as their version has to tell. Whoever can
  # look for a method instead does that.
  # @api private
  module Compatibility
    # From this release of Ruby on, a weak table loses no entries: https://bugs.ruby-lang.org/issues/19531
    RELIABLE_WEAK_TABLES = "3.2.3"
    # From these releases of Rack on, `rack.version` is gone, and `OPTIONS *` has a path.
    RACK_WITHOUT_VERSION = "3.0"
    RACK_WITH_ASTERISK = "3.2"
    private_constant :RELIABLE_WEAK_TABLES, :RACK_WITHOUT_VERSION, :RACK_WITH_ASTERISK

    # Ruby 3.4 and its default collector can put major collections off.
    FULL_MARKS_OPTIONAL = GC.respond_to?(:config) && GC.config.key?(:rgengc_allow_full_mark)
    # Ruby 3.1 does not say that it wants a major collection. It does if one of these values is above its limit. (And
    # sometimes if few slots are free, which cannot be seen.)
    MAJOR_WANTED_KNOWN = GC.latest_gc_info.key?(:need_major_by)
    MAJOR_LIMITS = { old_objects: :old_objects_limit,
                     remembered_wb_unprotected_objects: :remembered_wb_unprotected_objects_limit }.freeze
    # Ruby 3.1 has one heap. Later ones have one for each size of objects, of which 3.2 does not say how full they are.
    HEAPS = GC.respond_to?(:stat_heap) && GC.stat_heap(0).key?(:total_freed_objects) ? GC.stat_heap.size : 0
    # Up to Ruby 3.3 each heap knows how many pages it may add. From 3.4 on they share that.
    PAGES_SHARED = GC.stat.key?(:heap_allocatable_slots)
    # With fewer slots than these, a heap of Ruby 3.3 adds a page before it collects. (RUBY_GC_HEAP_*_INIT_SLOTS)
    SMALL_HEAP = 10_000
    private_constant :FULL_MARKS_OPTIONAL, :MAJOR_WANTED_KNOWN, :MAJOR_LIMITS, :HEAPS, :PAGES_SHARED, :SMALL_HEAP

    class << self
      # @param ruby [String] a version of Ruby
      # @return [Boolean] whether an `ObjectSpace::WeakMap` keeps what is in it
      def reliable_weak_tables?(ruby = RUBY_VERSION)
        at_least?(RELIABLE_WEAK_TABLES, ruby)
      end

      # @param rack [String] a release of Rack
      # @return [Boolean] whether the environment has a `rack.version`
      def rack_version_in_environment?(rack = Rack.release)
        !at_least?(RACK_WITHOUT_VERSION, rack)
      end

      # @param rack [String] a release of Rack
      # @return [Boolean] whether `OPTIONS *` has `*` as its `PATH_INFO`, or none
      def asterisk_in_path_info?(rack = Rack.release)
        at_least?(RACK_WITH_ASTERISK, rack)
      end

      # Says whether collections that Ruby begins by itself may be major ones; where they always may, nothing.
      #
      # Only `GC.start` ages objects while they may not, so what a request leaves behind stays young.
      #
      # @param allowed [Boolean]
      def allow_full_marks(allowed)
        GC.config(rgengc_allow_full_mark: allowed) if FULL_MARKS_OPTIONAL
      end

      # @return [Boolean] whether the next collection has to be a major one
      def major_collection_wanted?
        return !GC.latest_gc_info(:need_major_by).nil? if MAJOR_WANTED_KNOWN

        MAJOR_LIMITS.any? { |value, limit| GC.stat(value) > GC.stat(limit) }
      end

      # Makes a minor collection, or the major one that is wanted: Ruby sees to that. If a minor one finds a major one
      # wanted, that follows.
      def collect_garbage
        limit = GC.stat(:oldmalloc_increase_bytes_limit)
        GC.start(full_mark: false)
        # Ruby 3.1 raises this limit when it wants a major collection because of what was allocated beside the heaps.
        wanted = major_collection_wanted? || GC.stat(:oldmalloc_increase_bytes_limit) > limit
        GC.start(full_mark: false) if wanted
      end

      # @return [Array<Integer>] how many more objects each heap takes before Ruby collects
      def heap_room
        return Array.new(HEAPS) { |heap| room_in(heap) } if HEAPS.positive?

        more = GC.stat(:heap_allocatable_pages) * GC.stat(:heap_available_slots) / GC.stat(:heap_allocated_pages)
        [GC.stat(:heap_free_slots) + more]
      end

      # @return [Array<Integer>] how many objects were ever allocated in each heap
      def heap_allocations
        return Array.new(HEAPS) { |heap| GC.stat_heap(heap, :total_allocated_objects) } if HEAPS.positive?

        [GC.stat(:total_allocated_objects)]
      end

      private

      def room_in(heap)
        slots = GC.stat_heap(heap, :heap_eden_slots)
        live = GC.stat_heap(heap, :total_allocated_objects) - GC.stat_heap(heap, :total_freed_objects)
        return slots - live + GC.stat(:heap_allocatable_slots) if PAGES_SHARED

        more = GC.stat_heap(heap, :heap_allocatable_pages)
        more *= slots / GC.stat_heap(heap, :heap_eden_pages) unless more.zero?
        [slots + more, SMALL_HEAP].max - live
      end

      def at_least?(wanted, version)
        Gem::Version.new(version) >= Gem::Version.new(wanted)
      end
    end
  end
end
