# frozen_string_literal: true

module PitchforkRs
  # A server: its configuration, and the Ruby side of its processes. Programs that embed one use
  # `HttpServer.new(app, options).start.join`; hooks get it as their first argument.
  class HttpServer
    # Signals that the monitor acts on. They are noted, and looked at between two events.
    MONITOR_SIGNALS = %w[INT QUIT TERM USR2 TTIN TTOU].freeze
    # Signals that mean something to the monitor only, or that must not end a process by default.
    IGNORED_BY_CHILDREN = %w[HUP USR1 USR2 TTIN TTOU].freeze
    EXIT_SIGNALS = %w[INT QUIT TERM].freeze
    # Looked up once: each call of `Signal.list` makes a table whose keys Ruby then interns, and each worker would
    # write into its own copies of pages for it.
    SIGNAL_NUMBERS = Signal.list.slice(*MONITOR_SIGNALS).freeze
    HOOKS = %i[before_fork after_mold_fork after_worker_fork after_worker_ready after_monitor_ready before_worker_exit
               after_worker_exit after_request_complete after_worker_hard_timeout
               before_service_worker_ready before_service_worker_exit].freeze
    private_constant :MONITOR_SIGNALS, :IGNORED_BY_CHILDREN, :EXIT_SIGNALS, :SIGNAL_NUMBERS, :HOOKS

    # @return [Configurator] the settings
    attr_reader :config

    # Binds the listeners; nothing is started yet.
    #
    # @param app [#call] a Rack application, or a callable without parameters that returns one. It is called in the
    #   mold, so that the monitor never loads the application.
    # @param options [Hash] directives by name, `listeners:` and `config_file:`; see {Configurator#initialize}
    # @raise [ConfigurationError] if the configuration is wrong
    # @raise [SystemCallError] if an address cannot be bound
    def initialize(app, options = {})
      @app = app
      @config = Configurator.new(options)
      @native = NativeMonitor.new(self, config.native_settings)
      @exiting = false
    end

    # @return [Logger] the configured logger
    def logger = config[:logger]

    # @return [Integer] how many workers there shall be now
    def worker_processes = Info.workers_count

    # @return [Integer] seconds after which a busy worker is killed: soft timeout and clean-up together
    def timeout = config[:timeout]

    # Starts the server. Children never return from here.
    #
    # @param sync [Boolean] whether to wait until all workers are ready
    # @return [self]
    # @raise [BootFailure] if the application could not be loaded
    def start(sync = true) # rubocop:disable Style/OptionalBooleanParameter
      trap_monitor_signals
      Process.setproctitle("pitchfork-rs monitor - #{ARGV.join(" ")}")
      @status = @native.run(:mold)
      raise BootFailure, "the application could not be loaded, see the log" if @status == 1

      @status ||= @native.run(:workers) if sync
      announce unless @status
      self
    end

    # Runs the server until it is told to stop.
    #
    # @return [Integer] the exit status: 0 after a drain, 1 if the server could not go on
    def join
      logger.info("monitor process ready") unless @status
      @status ||= @native.run(:end)
      restore_traps
      logger.info("monitor complete status=#{@status}")
      @status
    end

    private

    # Everything below is called by the native side.

    HOOKS.each do |name|
      define_method(:"run_#{name}") { |*args| config[name]&.call(self, *args) }
    end

    def refork_condition = config[:refork_condition]

    def build_app
      return @app unless @app.respond_to?(:arity)

      case @app.arity
      when 0 then @app.call
      when 2 then @app.call(nil, self)
      else @app
      end
    end

    # A server whose operator's hook failed is not what the operator wanted.
    def announce
      run_after_monitor_ready
    rescue SystemExit => e
      stop(e.status)
    rescue StandardError, ScriptError => e
      PitchforkRs.log_error(logger, "after_monitor_ready error", e)
      stop(1)
    end

    def stop(status)
      NativeMonitor.note_signal(SIGNAL_NUMBERS.fetch("TERM"))
      @native.run(:end)
      @status = status
    end

    def trap_monitor_signals
      @traps = MONITOR_SIGNALS.to_h { |signal| [signal, note(signal)] }
      # A handler of any kind makes a child's end interrupt the monitor's wait.
      %w[CHLD HUP USR1].each { |signal| @traps[signal] = trap(signal) { nil } }
    end

    # For a program that goes on after its server.
    def restore_traps
      @traps.each { |signal, handler| trap(signal, handler || "DEFAULT") }
    end

    # From the fork until its hooks have run, a signal to exit ends a child at once: there is nothing to finish. An
    # empty block, unlike "IGNORE", is not inherited by the programs that an application starts.
    def trap_child_signals
      EXIT_SIGNALS.each { |signal| trap(signal) { exit!(0) } }
      IGNORED_BY_CHILDREN.each { |signal| trap(signal) { nil } }
      trap("CHLD", "DEFAULT")
    end

    # From then on only INT does.
    def trap_leave_signals
      %w[QUIT TERM].each { |signal| note(signal) }
    end

    def note(signal)
      number = SIGNAL_NUMBERS.fetch(signal)
      trap(signal) { NativeMonitor.note_signal(number) }
    end

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
      Signal.list.fetch(signal.to_s)
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
end
