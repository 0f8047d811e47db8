# frozen_string_literal: true

module PitchforkRs
  # The hooks.
  class Configurator
    # @!group Directives

    # @!method before_fork(callable = nil, &block)
    #   In the mold before it forks each worker or the service, and in a worker before it forks a mold. `nil` removes
    #   the hook.
    #   @yieldparam server [HttpServer]
    #   @raise [ConfigurationError] if it does not take exactly one argument
    hook :before_fork, :server

    # @!method after_mold_fork(callable = nil, &block)
    #   In each new mold once it has the application. By default, and after `nil`, it logs the spawn.
    #   @yieldparam server [HttpServer]
    #   @yieldparam mold [Worker]
    #   @raise [ConfigurationError] if it does not take exactly two arguments
    hook :after_mold_fork, :server, :mold, default: DefaultHooks::SPAWNED

    # @!method after_worker_fork(callable = nil, &block)
    #   In each new worker. By default, and after `nil`, it logs the spawn.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @raise [ConfigurationError] if it does not take exactly two arguments
    hook :after_worker_fork, :server, :worker, default: DefaultHooks::SPAWNED

    # @!method after_worker_ready(callable = nil, &block)
    #   In each worker before it takes its first request. By default, and after `nil`, it logs that.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @raise [ConfigurationError] if it does not take exactly two arguments
    hook :after_worker_ready, :server, :worker, default: DefaultHooks::WORKER_READY

    # @!method after_monitor_ready(callable = nil, &block)
    #   In the monitor once it is running. By default, and after `nil`, it logs that.
    #   @yieldparam server [HttpServer]
    #   @raise [ConfigurationError] if it does not take exactly one argument
    hook :after_monitor_ready, :server, default: DefaultHooks::MONITOR_READY

    # @!method before_worker_exit(callable = nil, &block)
    #   In a worker that is about to exit. `nil` removes the hook.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @raise [ConfigurationError] if it does not take exactly two arguments
    hook :before_worker_exit, :server, :worker

    # @!method after_worker_exit(callable = nil, &block)
    #   In the monitor after a worker, a mold or the service has ended. By default, and after `nil`, it logs that, as an
    #   error unless the process succeeded.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @yieldparam status [Process::Status]
    #   @raise [ConfigurationError] if it does not take exactly three arguments
    hook :after_worker_exit, :server, :worker, :status, default: DefaultHooks::REAPED

    # @!method after_worker_timeout(callable = nil, &block)
    #   In a worker whose request takes longer than the timeout, on another thread than the request's, before the worker
    #   ends. `nil` removes the hook.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @yieldparam info [TimeoutInfo] the request's thread and its environment
    #   @raise [ConfigurationError] if it does not take exactly three arguments
    hook :after_worker_timeout, :server, :worker, :info

    # @!method after_worker_hard_timeout(callable = nil, &block)
    #   In the monitor before it kills a worker, or the service, that has missed its last deadline. `nil` removes the
    #   hook.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @raise [ConfigurationError] if it does not take exactly two arguments
    hook :after_worker_hard_timeout, :server, :worker

    # @!method before_service_worker_ready(callable = nil, &block)
    #   In the service, a process that serves no requests, before it counts as ready. This hook is what makes there be a
    #   service: it starts the threads, or the processes, that shall run once per server, and returns. `nil` removes it.
    #   @yieldparam server [HttpServer]
    #   @yieldparam service [Worker]
    #   @raise [ConfigurationError] if it does not take exactly two arguments
    hook :before_service_worker_ready, :server, :service

    # @!method before_service_worker_exit(callable = nil, &block)
    #   In the service that is about to exit. `nil` removes the hook.
    #   @yieldparam server [HttpServer]
    #   @yieldparam service [Worker]
    #   @raise [ConfigurationError] if it does not take exactly two arguments
    hook :before_service_worker_exit, :server, :service

    # @!method after_request_complete(callable = nil, &block)
    #   In a worker after each request, when the response has been sent. `nil` removes the hook.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @yieldparam env [Hash] the Rack environment
    #   @raise [ConfigurationError] if it does not take exactly three arguments
    hook :after_request_complete, :server, :worker, :env

    # @!endgroup
  end
end
