# frozen_string_literal: true

module PitchforkRs
  # The directives about processes: how many, and when they are replaced.
  class Configurator
    TIMEOUT_OPTIONS = { cleanup: ValueCheck.integer(2) }.freeze
    private_constant :TIMEOUT_OPTIONS

    # @!group Directives

    # @!method worker_processes(count)
    #   How many workers serve requests. The default is that of the environment variable `WEB_CONCURRENCY`, else 1.
    #   @param count [Integer] at least 1
    #   @raise [ConfigurationError]
    directive :worker_processes, ValueCheck.integer(1),
              default: 1,
              computed: ->(_) { EnvironmentSettings.worker_processes || DEFAULTS[:worker_processes] }

    # @!method spawn_timeout(seconds)
    #   How long a process may take from its fork until it is ready. The default is 10.
    #   @param seconds [Integer] at least 1
    #   @raise [ConfigurationError]
    directive :spawn_timeout, ValueCheck.integer(1), default: 10

    setting :soft_timeout, ValueCheck.integer(3), default: 20
    setting :cleanup_timeout, ValueCheck.integer(2), default: 2
    setting :timeout, nil, default: 22, computed: ->(set) { set[:soft_timeout] + set[:cleanup_timeout] }

    # How long a request may take. When the time is up the worker is asked to end, and after `cleanup` more seconds it
    # is killed. The defaults are 20 and 2.
    #
    # @param seconds [Integer] at least 3
    # @param options [Hash]
    # @option options [Integer] :cleanup seconds, at least 2 (the default)
    # @raise [ConfigurationError]
    def timeout(seconds, options = {})
      @verifier.verify(:timeout, SETTING_DEFINITIONS[:soft_timeout].check, seconds)
      @verifier.verify_options(:timeout, options, TIMEOUT_OPTIONS)
      set.merge!(soft_timeout: seconds, cleanup_timeout: options.fetch(:cleanup, DEFAULTS[:cleanup_timeout]))
    end
    directive_method :timeout

    # What a process is sent that has missed its last deadline. One that is still there five seconds later is sent
    # `KILL`.
    #
    # @example The backtrace of a Ruby that hangs in native code
    #   timeout_signal :ABRT
    #
    # @overload timeout_signal(name)
    #   @param name [Symbol] such as `:KILL`, the default
    # @overload timeout_signal(callable = nil, &block)
    #   @yieldparam pid [Integer]
    #   @yieldreturn [Symbol]
    # @raise [ConfigurationError]
    def timeout_signal(signal = nil, &block)
      set[:timeout_signal] = one_of(:timeout_signal, signal, block)
    end
    directive_method :timeout_signal
    setting :timeout_signal, ValueCheck.signal, default: :KILL

    # After how many requests a worker becomes the mold of the next generation, for each generation in turn; the last
    # number stands for all later ones, and a `false` at the end for never again. It sets the refork condition.
    #
    # @example
    #   refork_after [50, 200, 1000]
    #   refork_after [50, 200, false]
    #
    # @param limits [Array<Integer, false>] of at least 1 each
    # @raise [ConfigurationError]
    def refork_after(limits)
      @verifier.verify(:refork_after, ValueCheck.refork_limits, limits)
      set[:refork_condition] = ReforkCondition::RequestsCount.new(limits)
    end
    directive_method :refork_after

    # @!method refork_condition(condition)
    #   When a worker becomes the mold of the next generation: asked in each worker between two requests, and told
    #   `backoff!` after an attempt if it responds to that. Same as `set[:refork_condition] = condition`. There is none
    #   by default, and after `nil`.
    #   @param condition [#met?, nil] called as `met?(worker, logger)`
    #   @see ReforkCondition::RequestsCount
    #   @raise [ConfigurationError]
    directive :refork_condition, ValueCheck.responding_to(:met?, nil_resets: true)

    # @!method refork_max_unavailable(count)
    #   How many workers may be down at a time while a refork replaces them. The default is a tenth of the workers,
    #   rounded up.
    #   @param count [Integer] at least 1
    #   @raise [ConfigurationError]
    directive :refork_max_unavailable, ValueCheck.integer(1),
              computed: lambda { |set|
                DEFAULTS[:refork_max_unavailable] || (set[:worker_processes] / 10.0).ceil
              }

    # @!method max_consecutive_spawn_errors(count)
    #   How many processes in a row may fail to come up. One more ends the server with status 1, after the requests in
    #   hand. There is no limit by default, and after `nil`: attempts are made at growing intervals, for ever.
    #   @param count [Integer, nil] at least 1
    #   @raise [ConfigurationError]
    directive :max_consecutive_spawn_errors, ValueCheck.integer(1, nil_resets: true)

    # @!method setpgid(separate)
    #   Whether each process leads a process group of its own, so that a signal to the monitor's group, such as that of
    #   a terminal, reaches the monitor alone. The default is true.
    #   @param separate [Boolean]
    #   @raise [ConfigurationError]
    directive :setpgid, ValueCheck.boolean, default: true

    # @!method mold_prepare(prepare)
    #   Whether a new mold, and the monitor before its first fork, age their objects and tidy their heap, so that all
    #   processes share more of their memory. The default is true.
    #   @param prepare [Boolean]
    #   @raise [ConfigurationError]
    directive :mold_prepare, ValueCheck.boolean, default: true

    # @!method oob_gc(how)
    #   Whether a worker that has nothing to do collects garbage when the next request would have to. On Ruby 3.4 and
    #   later no request has to wait for a major collection then. The default is false.
    #
    #   @example
    #     oob_gc true
    #   @example At least every 250 requests
    #     oob_gc every: 250
    #
    #   @param how [Boolean, Hash{Symbol => Integer}] with `every:`, collections also come after that many requests,
    #     at least 1
    #   @raise [ConfigurationError]
    directive :oob_gc, ValueCheck.switch_or(:every), default: false

    # @!endgroup
  end
end
