# frozen_string_literal: true

require_relative "../common/session"

module Wakeups
  # How often processes have gone to sleep, each time because there was nothing to do any more. It is one more after
  # each time that they were woken.
  module Switches
    # As the servers call their workers in their titles: `worker[3]`, `cluster worker 3:`.
    WORKER = /worker(?:\[| )\d+/

    module_function

    # @return [Array<Integer>] those of these processes that are workers
    def workers(pids)
      pids.select do |pid|
        File.binread("/proc/#{pid}/cmdline").match?(WORKER)
      rescue *Bench::Session::GONE
        false
      end
    end

    # @return [Hash{Integer => Integer}, nil] voluntary context switches by process, those of all its threads; nil if
    #   one of them is not asleep
    def of(pids)
      pids.to_h do |pid|
        threads = Dir.glob("/proc/#{pid}/task/*/status").map { |path| parse(File.read(path)) }
        return nil unless threads.all?(&:asleep)

        [pid, threads.sum(&:switches)]
      end
    end

    Thread = Struct.new(:asleep, :switches)

    # Reads a `status` of /proc.
    def parse(status)
      Thread.new(status.match?(/^State:\s+S/), Integer(status[/^voluntary_ctxt_switches:\s+(\d+)/, 1]))
    end
  end
end
