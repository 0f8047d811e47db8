# frozen_string_literal: true

module PitchforkRs
  class Configurator
    # The hooks that stand until the configuration brings its own: they write the log lines of a process's life.
    # @api private
    module DefaultHooks
      SPAWNED = ->(server, worker) { server.logger.info("#{worker.to_log} spawned") }
      WORKER_READY = ->(server, worker) { server.logger.info("#{worker.to_log} ready") }
      MONITOR_READY = ->(server) { server.logger.info("monitor pid=#{Process.pid} ready") }
      REAPED = lambda do |server, worker, status|
        line = "#{worker.to_log} reaped (#{status.inspect})"
        # `success?` is nil for a process that a signal ended.
        status.success? ? server.logger.info(line) : server.logger.error(line)
      end
    end
  end
end
