# frozen_string_literal: true

require "logger"
require_relative "errors"
require_relative "refork_condition"
require_relative "configurator/config_file"
require_relative "configurator/default_hooks"
require_relative "configurator/environment_settings"
require_relative "configurator/listen_address"
require_relative "configurator/setting_table"
require_relative "configurator/setting_verifier"
require_relative "configurator/value_check"

module PitchforkRs
  # The server's settings: those of a Hash of options, then those of a configuration file, which is evaluated with the
  # Configurator as self. Each directive of the file is a public method here.
  #
  # @example config/pitchfork.rb
  #   worker_processes 4
  #   listen "/run/app.sock", backlog: 64
  #   timeout 30, cleanup: 3
  #   refork_after [50, 200, 1000]
  #   after_worker_fork { |server, worker| Metrics.connect(worker.nr) }
  class Configurator
    # One line of the table below: what a setting accepts, and what it is when nobody says.
    # @api private
    SettingDefinition = Struct.new(:name, :check, :computed) do
      def default_in(table)
        computed ? computed.call(table) : DEFAULTS[name]
      end
    end
    SETTING_DEFINITIONS = {} # rubocop:disable Style/MutableConstant
    DIRECTIVE_NAMES = [] # rubocop:disable Style/MutableConstant
    LISTEN_OPTIONS = { backlog: ValueCheck.integer(1) }.freeze
    LISTEN_DEFAULTS = { backlog: 1024 }.freeze
    TIMEOUT_OPTIONS = { cleanup: ValueCheck.integer(2) }.freeze
    private_constant :SettingDefinition, :SETTING_DEFINITIONS, :DIRECTIVE_NAMES,
                     :LISTEN_OPTIONS, :LISTEN_DEFAULTS, :TIMEOUT_OPTIONS

    # Where the configuration file is looked for when none is named.
    DEFAULT_FILE = "config/pitchfork.rb"

    # The value of each setting that is not made. Configuration files may read and change it.
    DEFAULTS = {} # rubocop:disable Style/MutableConstant

    # What the command line says, for configuration files to read: `:host`, `:port`, `:set_listener` (whether these two
    # add a listener) and `:options` (what the server is made with). The port is that of `PORT`, else 8080, until the
    # command line names one.
    RACKUP = Hash.new { |_, key| EnvironmentSettings.port || 8080 if key == :port }
    RACKUP.merge!(host: ListenAddress::ANY_HOST, set_listener: false, options: { listeners: [] })

    class << self
      # @return [Array<Symbol>] the names of all directives
      def directives
        DIRECTIVE_NAMES.dup
      end

      private

      # A setting that no directive of its name makes.
      def setting(name, check, default: nil, computed: nil)
        DEFAULTS[name] = default
        SETTING_DEFINITIONS[name] = SettingDefinition.new(name, check, computed)
      end

      # A setting with a directive that takes its value.
      #
      # The method is made from text because a wrong number of arguments is reported under its name, which a block has
      # not.
      def directive(name, check, **settled)
        setting(name, check, **settled)
        DIRECTIVE_NAMES << name
        class_eval <<~RUBY, __FILE__, __LINE__ + 1
          # def worker_processes(value) = set[:worker_processes] = value
          def #{name}(value) = set[:#{name}] = value
        RUBY
      end

      # A setting with a directive that takes a block or a callable.
      def hook(name, *parameters, default: nil)
        setting(name, ValueCheck.hook(*parameters), default: default)
        DIRECTIVE_NAMES << name
        class_eval <<~RUBY, __FILE__, __LINE__ + 1
          # def before_fork(callable = nil, &block) = set_hook(:before_fork, callable, block)
          def #{name}(callable = nil, &block) = set_hook(:#{name}, callable, block)
        RUBY
      end

      # Marks a method that is written out as a directive.
      def directive_method(name)
        DIRECTIVE_NAMES << name
      end
    end

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

    # @!method logger(object)
    #   Where the server logs to. The default writes to standard error.
    #   @param object [#debug, #info, #warn, #error, #fatal]
    #   @raise [ConfigurationError]
    directive :logger, ValueCheck.responding_to(:debug, :info, :warn, :error, :fatal),
              default: Logger.new($stderr, progname: "[Pitchfork]", formatter: Logger::Formatter.new)

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

    # @!method mold_prepare(prepare)
    #   Whether a new mold ages its objects and trims its heap before it forks, so that workers share more of its
    #   memory. The default is true.
    #   @param prepare [Boolean]
    #   @raise [ConfigurationError]
    directive :mold_prepare, ValueCheck.boolean, default: true

    # @!method client_body_buffer_size(bytes)
    #   The size above which the body of a request is kept in a file instead of memory. The default is 112 KiB.
    #   @param bytes [Integer] at least 0
    #   @raise [ConfigurationError]
    directive :client_body_buffer_size, ValueCheck.integer(0), default: 112 * 1024

    # @!method client_header_timeout(seconds)
    #   How long a client may take to send the head of a request; then it gets 408. The default is 10.
    #   @param seconds [Numeric] more than 0
    #   @raise [ConfigurationError]
    directive :client_header_timeout, ValueCheck.seconds, default: 10

    # @!method client_body_timeout(seconds)
    #   How long a client may send nothing of a body that is waited for; then it gets 408. The default is 30.
    #   @param seconds [Numeric] more than 0
    #   @raise [ConfigurationError]
    directive :client_body_timeout, ValueCheck.seconds, default: 30

    # @!method client_min_rate(bytes)
    #   How many bytes a second a body must come in at, over its whole length and after the first
    #   `client_body_timeout`; a slower client gets 408. The default is 500; 0 is for no such limit.
    #   @param bytes [Integer] at least 0
    #   @raise [ConfigurationError]
    directive :client_min_rate, ValueCheck.integer(0), default: 500

    # @!method client_max_header_size(bytes)
    #   The size beyond which the head of a request gets 431. The default is 112 KiB.
    #   @param bytes [Integer] at least 1024
    #   @raise [ConfigurationError]
    directive :client_max_header_size, ValueCheck.integer(1024), default: 112 * 1024

    # @!method client_max_body_size(bytes)
    #   The size beyond which a request body gets 413. There is no limit by default, and after `nil`.
    #   @param bytes [Integer, nil] at least 0
    #   @raise [ConfigurationError]
    directive :client_max_body_size, ValueCheck.integer(0, nil_resets: true)

    # @!method write_timeout(seconds)
    #   How long a client may take nothing of a response; then its connection is closed. The default is 30.
    #   @param seconds [Numeric] more than 0
    #   @raise [ConfigurationError]
    directive :write_timeout, ValueCheck.seconds, default: 30

    # @!method rewindable_input(rewindable)
    #   Whether `rack.input` can be read again after `rewind`, as Rack 2 demands. If not, a body passes through without
    #   being kept, and one in chunks reaches the application before it is complete, without a length. The default is
    #   true.
    #   @param rewindable [Boolean]
    #   @raise [ConfigurationError]
    directive :rewindable_input, ValueCheck.boolean, default: true

    # @!method early_hints(enabled)
    #   Whether `rack.early_hints` sends `103 Early Hints`. The default is false.
    #   @param enabled [Boolean]
    #   @raise [ConfigurationError]
    directive :early_hints, ValueCheck.boolean, default: false

    # @!method before_fork(callable = nil, &block)
    #   In the mold before it forks each worker, and in a worker before it forks a mold. `nil` removes the hook.
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
    #   In the monitor after a worker or a mold has ended. By default, and after `nil`, it logs that, as an error unless
    #   the process succeeded.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @yieldparam status [Process::Status]
    #   @raise [ConfigurationError] if it does not take exactly three arguments
    hook :after_worker_exit, :server, :worker, :status, default: DefaultHooks::REAPED

    # @!method after_request_complete(callable = nil, &block)
    #   In a worker after each request, when the response has been sent. `nil` removes the hook.
    #   @yieldparam server [HttpServer]
    #   @yieldparam worker [Worker]
    #   @yieldparam env [Hash] the Rack environment
    #   @raise [ConfigurationError] if it does not take exactly three arguments
    hook :after_request_complete, :server, :worker, :env

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

    # Adds an address to listen on: a port, `"host:port"`, `"*:port"`, `"[IPv6]:port"`, or a Unix socket as
    # `"/path.sock"`, `"~/path.sock"` or `"unix:path.sock"`, the last relative to the working directory. A host name is
    # resolved once, here. An address given twice is kept once, with the options of both. Without any the server listens
    # on `0.0.0.0:8080`, or at the port of the environment variable `PORT`.
    #
    # @param address [Integer, String]
    # @param options [Hash]
    # @option options [Integer] :backlog connections that may wait to be accepted, at least 1 (default 1024)
    # @raise [ConfigurationError]
    def listen(address, options = {})
      @verifier.verify_options(:listen, options, LISTEN_OPTIONS)
      canonical = canonical_address(address)
      @listen_table[canonical] = @listen_table.fetch(canonical, {}).merge(options)
    end
    directive_method :listen

    # @!endgroup

    # @return [Hash{Symbol => Object}] the settings made; one that was not made reads as its default, and storing a
    #   value raises a {ConfigurationError} if it is not accepted
    attr_reader :set

    # @return [String, nil] path of the configuration file
    attr_reader :config_file

    # @param options [Hash] directives by name, and
    # @option options [Array<Integer, String>] :listeners addresses to listen on
    # @option options [String, nil] :config_file `config/pitchfork.rb` by default, if it exists; `nil` for none
    # @raise [ConfigurationError] if an option, the file or the environment is wrong
    def initialize(options = {})
      @verifier = SettingVerifier.new
      @set = SettingTable.new(SETTING_DEFINITIONS, @verifier)
      @listen_table = {}
      options = options.dup
      @config_file = options.delete(:config_file) { DEFAULT_FILE if File.exist?(DEFAULT_FILE) }&.to_s
      @verifier.from("options") { apply(options) }
      evaluate_file if config_file
      complete
    end

    # @param name [Symbol]
    # @return [Object, nil] the setting, or its default; nil if there is no such setting
    def [](name)
      set[name]
    end

    # @return [Array<(String, Hash)>] address and options of each listener: the address as `1.2.3.4:80`, `[::1]:80` or
    #   an absolute path, the options with their defaults
    def listeners
      @listen_table.map { |address, options| [address, LISTEN_DEFAULTS.merge(options)] }
    end

    # @return [Hash{Symbol => Object}] what the native side needs to know, as plain data; times are whole seconds
    def native_settings
      names = %i[worker_processes soft_timeout cleanup_timeout spawn_timeout refork_max_unavailable mold_prepare
                 client_body_buffer_size client_header_timeout client_body_timeout client_min_rate
                 client_max_header_size client_max_body_size write_timeout rewindable_input early_hints]
      names.to_h { |name| [name, set[name]] }
           .merge(listeners: listeners.map { |address, options| [address, options[:backlog]] })
    end

    private

    def apply(options)
      Array(options.delete(:listeners)).each { |address| listen(address) }
      options.each do |name, value|
        @verifier.unknown_directive(name) unless DIRECTIVE_NAMES.include?(name)
        public_send(name, value)
      end
    end

    def evaluate_file
      @verifier.file = config_file
      ConfigFile.new(config_file, @verifier).evaluate(self)
    end

    # Reads the environment now, once, so that what is wrong there stops the start and what changes later is no matter.
    def complete
      set[:worker_processes] = set[:worker_processes]
      return if !RACKUP[:set_listener] && @listen_table.any?

      host = RACKUP[:set_listener] ? RACKUP[:host] : ListenAddress::ANY_HOST
      host = "[#{host}]" if host.count(":") > 1 && !host.start_with?("[")
      @verifier.from("command line") { listen("#{host}:#{RACKUP[:port]}") }
    end

    def set_hook(name, callable, block)
      @verifier.reject(name, callable, "and a block: wanted one of them") if callable && block
      set[name] = block || callable
    end

    def canonical_address(address)
      ListenAddress.canonical(address)
    rescue ListenAddress::Invalid => e
      @verifier.reject(:listen, address, e.message)
    end
  end
end
