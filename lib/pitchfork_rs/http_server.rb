# frozen_string_literal: true

require_relative "http_server/exits"
require_relative "http_server/listening"
require_relative "http_server/signals"

module PitchforkRs
  # A server: its configuration, and the Ruby side of its processes. Programs that embed one use
  # `HttpServer.new(app, options).start.join`; hooks get it as their first argument.
  class HttpServer
    include Exits
    include Listening
    include Signals

    HOOKS = %i[before_fork after_mold_fork after_worker_fork after_worker_ready after_monitor_ready before_worker_exit
               after_worker_exit after_request_complete after_worker_hard_timeout
               before_service_worker_ready before_service_worker_exit].freeze
    private_constant :HOOKS

    class << self
      # @return [Array<IO>] what this process has open for the server itself
      # @api private
      def open_ios
        [*LISTENERS, @log_files&.logger_file].compact
      end

      # @return [LogFiles] those of the latest server
      # @api private
      attr_writer :log_files
    end

    # @return [Configurator] the settings
    attr_reader :config

    # Reads the configuration; nothing is bound or started yet.
    #
    # @param app [#call] a Rack application, or a callable without parameters that returns one. It is called in the
    #   mold, so that the monitor never loads the application.
    # @param options [Hash, Configurator] directives by name, `listeners:` and `config_file:`; see
    #   {Configurator#initialize}
    # @raise [ConfigurationError] if the configuration is wrong, the pid file names a process that runs, or a file to
    #   log to cannot be opened
    def initialize(app, options = {})
      @app = app
      @config = options.is_a?(Configurator) ? options : Configurator.new(options)
      @log_files = self.class.log_files = LogFiles.new(config)
      @pid_file = PidFile.new(config[:pid], config.set.place_of(:pid)) if config[:pid]
      @pid_file&.check
      @log_files.check
      @native = NativeMonitor.new(self, config.native_settings)
      @private_listeners = []
      @exiting = false
    end

    # @return [Logger] the configured logger
    def logger = config[:logger]

    # @return [Integer] how many workers there shall be now
    def worker_processes = Info.workers_count

    # @return [Integer] seconds after which a busy worker is killed: soft timeout and clean-up together
    def timeout = config[:timeout]

    # Binds the listeners, again and again while one of them is in use as its options say, and starts the server.
    # Children never return from here.
    #
    # @param sync [Boolean] whether to wait until all workers are ready
    # @return [self]
    # @raise [BootFailure] if an address cannot be listened on, or the application could not be loaded
    # @raise [ConfigurationError] if the pid file cannot be written
    def start(sync = true) # rubocop:disable Style/OptionalBooleanParameter
      @log_files.redirect
      trap_monitor_signals
      Process.setproctitle("pitchfork-rs monitor - #{ARGV.join(" ")}")
      @status = bind_listeners || boot
      @status ||= @native.run(:workers) if sync
      announce unless @status
      @running = !@status
      self
    ensure
      # Only the monitor comes by here, and in `join`.
      @pid_file&.remove unless @running
    end

    # Runs the server until it is told to stop.
    #
    # @return [Integer] the exit status: 0 after a drain, 1 if the server could not go on
    # @raise [RuntimeError] if it was not started
    def join
      raise "this server was not started: start comes before join" unless @running || @status

      logger.info("monitor process ready") unless @status
      @status ||= @native.run(:end)
      LISTENERS.remove
      restore_traps
      logger.info("monitor complete status=#{@status}")
      @status
    ensure
      @pid_file&.remove
    end

    private

    # Everything below is called by the native side.

    HOOKS.each do |name|
      define_method(:"run_#{name}") { |*args| config[name]&.call(self, *args) }
    end

    def refork_condition = config[:refork_condition]

    def out_of_band_gc
      how = config[:oob_gc]
      OutOfBandGC.new(how == true ? nil : how[:every]) if how
    end

    def request_hook? = !config[:after_request_complete].nil?

    def reopen_logs = @log_files.reopen

    def enter_role(process)
      Log.process = process
    end

    def build_app
      return @app unless @app.respond_to?(:arity)

      case @app.arity
      when 0 then @app.call
      when 2 then @app.call(nil, self)
      else @app
      end
    end

    # @return [Integer, nil] the exit status if the server was told to end meanwhile
    def boot
      write_pid_file
      status = @native.run(:mold)
      return status unless status == 1

      LISTENERS.remove
      raise BootFailure, "the application could not be loaded, see the log"
    end

    def write_pid_file
      @pid_file&.write
    rescue ConfigurationError
      let_go_of_listeners
      restore_traps
      raise
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
      NativeMonitor.note_signal(Signal.list.fetch("TERM"))
      @native.run(:end)
      @status = status
    end
  end
end
