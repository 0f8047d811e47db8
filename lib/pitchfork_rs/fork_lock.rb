# frozen_string_literal: true

module PitchforkRs
  # Keeps a process from forking while some thread of it may hold a lock of native code: nobody would release the copy
  # of that lock in the child. Threads that hold it do not exclude each other, only forks.
  #
  # Nor may another Ractor run: of that a child gets a half, and up to Ruby 3.4 at least it crashes at one of its next
  # allocations or collections.
  # @api private
  module ForkLock
    # How long a fork may wait before that is worth a line.
    PATIENCE = 1.0
    private_constant :PATIENCE

    @mutex = Mutex.new
    @changed = ConditionVariable.new
    @holders = Hash.new(0)
    @forking = false

    class << self
      # Runs the block, before which no fork begins until it returns. Nested calls are fine.
      #
      # @return [Object] what the block returns
      def hold
        enter
        begin
          yield
        ensure
          leave
        end
      end

      # Waits until nobody holds the lock, then keeps everybody from taking it until {#release}, and gives Ractors a
      # second to end. Not for a thread that holds it.
      #
      # @param logger [#warn, #error] told when that takes long, and when it takes too long
      # @param name [String] who wants to fork
      # @param limit [Float] seconds to wait at most
      # @return [Boolean] whether this process may be forked now
      def acquire(logger, name, limit)
        return false unless exclude_holders(logger, name, limit)
        return true if alone?([PATIENCE, limit].min)

        logger.error("#{name} gives up its fork: the new process would crash, because other Ractors run here " \
                     "(#{Ractor.count - 1})")
        release
        false
      end

      # @return [void]
      def release
        @mutex.synchronize { forget_fork }
      end

      private

      def exclude_holders(logger, name, limit)
        @mutex.synchronize do
          @forking = true
          next true if all_gone?([PATIENCE, limit].min)

          logger.warn("#{name} waits to fork: prevent_fork has been held for a second by #{describe_holders}")
          next true if all_gone?(limit - PATIENCE)

          logger.error("#{name} gives up its fork: prevent_fork was not left within #{limit} seconds " \
                       "by #{describe_holders}")
          forget_fork
          false
        end
      end

      # A fork that waits comes first, or many threads that follow on each other could hold it off for ever.
      def enter
        thread = Thread.current
        @mutex.synchronize do
          @changed.wait(@mutex) while @forking && !@holders.key?(thread)
          @holders[thread] += 1
        end
      end

      def leave
        thread = Thread.current
        @mutex.synchronize do
          @holders[thread] -= 1
          @holders.delete(thread) if @holders[thread].zero?
          @changed.broadcast
        end
      end

      def forget_fork
        @forking = false
        @changed.broadcast
      end

      def all_gone?(seconds)
        deadline = now + seconds
        until @holders.empty?
          left = deadline - now
          return false unless left.positive?

          @changed.wait(@mutex, left)
        end
        true
      end

      # Nothing tells when a Ractor ends, not even its value.
      def alone?(seconds)
        deadline = now + seconds
        sleep(0.01) until Ractor.count == 1 || now > deadline
        Ractor.count == 1
      end

      def describe_holders
        @holders.keys.map(&:inspect).join(", ")
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
