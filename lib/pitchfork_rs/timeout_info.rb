# frozen_string_literal: true

module PitchforkRs
  # What `after_worker_timeout` gets to know about the request that takes too long.
  class TimeoutInfo
    # @return [Thread] the thread that serves the request
    attr_reader :thread

    # @return [Hash, nil] the Rack environment of the request; nil if it has just ended
    attr_reader :rack_env

    # @api private
    def initialize(thread, rack_env)
      @thread = thread
      @rack_env = rack_env
    end

    # Copies what the request has stored in its thread, fiber-local and thread-local, to the calling one, so that
    # loggers and error reporters find their context there.
    #
    # @return [void]
    def copy_thread_variables!
      here = Thread.current
      fiber_local = thread.keys
      fiber_local.each { |key| here[key] = thread[key] }
      thread.thread_variables.each { |key| here.thread_variable_set(key, thread.thread_variable_get(key)) }
    end
  end
end
