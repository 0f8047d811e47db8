# frozen_string_literal: true

require_relative "../timeout_info"

module PitchforkRs
  class HttpServer
    # How children end, in time or because they are late. The native side calls these methods.
    # @api private
    module Exits
      private

      # On the watcher's thread: the request in hand takes too long. The main thread gets the exit.
      def soft_timeout(worker, timeout)
        logger.error("#{worker.to_log} timed out, exiting")
        info = TimeoutInfo.new(Thread.main, timeout.rack_env)
        logging_errors("after_worker_timeout") { config[:after_worker_timeout]&.call(self, worker, info) }
        worker_exit(worker)
        exit
      end

      def timeout_signal_for(pid)
        signal = config[:timeout_signal]
        signal = signal.call(pid) unless signal.is_a?(Symbol)
        # As Process.kill takes it.
        signal.is_a?(Integer) ? signal : Signal.list.fetch(signal.to_s.delete_prefix("SIG"))
      end

      # Once, though the exit of the hook itself may come here again.
      def worker_exit(worker)
        return if @exiting

        @exiting = true
        child_exit(worker, "worker[#{worker.nr}]")
        logging_errors("before_worker_exit") { run_before_worker_exit(worker) }
      end

      def service_exit(service)
        child_exit(service, "service")
        logging_errors("before_service_worker_exit") { run_before_service_worker_exit(service) }
      end

      def child_exit(child, role)
        logger.info("#{child.to_log} exiting")
        Process.setproctitle("pitchfork-rs (gen:#{child.generation}) #{role} - exiting")
      end

      # As the native side does it: whatever is no exit, no signal and no throw.
      def logging_errors(hook)
        yield
      rescue StandardError, ScriptError, NoMemoryError, SystemStackError => e
        PitchforkRs.log_error(logger, "#{hook} error", e)
      end
    end
    private_constant :Exits
  end
end
