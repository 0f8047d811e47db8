# frozen_string_literal: true

require "logger"
require_relative "errors"
require_relative "refork_condition"
require_relative "configurator/config_file"
require_relative "configurator/default_hooks"
require_relative "configurator/environment_settings"
require_relative "configurator/foreign_directives"
require_relative "configurator/listen_address"
require_relative "configurator/setting_table"
require_relative "configurator/setting_verifier"
require_relative "configurator/value_check"

module PitchforkRs
  # The server's settings: those of a Hash of options, then those of a configuration file, which is evaluated with the
  # Configurator as self. Each directive of the file is a public method here; they
  # are defined in `configurator/directives/`.
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
    private_constant :SettingDefinition, :SETTING_DEFINITIONS, :DIRECTIVE_NAMES

    # Where a setting comes from that nobody has made.
    DEFAULT_ORIGINS = %w[default environment].freeze
    private_constant :DEFAULT_ORIGINS

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

      # @return [Hash{Symbol => String}] the directives whose value can be written as text, and what each wants
      # @api private
      def textual_directives
        SETTING_DEFINITIONS.slice(*DIRECTIVE_NAMES).select { |_, definition| definition.check&.textual? }
                           .transform_values { |definition| definition.check.wanted }
      end

      # @param name [Symbol] a directive
      # @param value [Object] what was given for it; a String is read as what the directive wants, if it can be
      # @return [Object]
      # @api private
      def from_text(name, value)
        check = SETTING_DEFINITIONS[name]&.check
        return value unless value.is_a?(String)
        return check.read(value) if check

        return value unless value.match?(/\A\d+(?:,\d+)*(?:,false)?\z/)

        numbers = value.split(",").map { |word| word == "false" ? false : word.to_i }
        name == :refork_after || numbers.size > 1 ? numbers : numbers.first
      end

      # @param name [#to_s] a directive that there is not
      # @return [Boolean] whether it looks like one that there is
      # @api private
      def resembles_directive?(name)
        !replacement_for(name).nil? || !SettingVerifier.suggestion(name, DIRECTIVE_NAMES).nil?
      end

      # @param name [#to_s] a directive that there is not
      # @return [String, nil] what to do instead, if it is one of Unicorn's
      # @api private
      def replacement_for(name)
        FOREIGN_DIRECTIVES[name.to_s.to_sym]
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
      @listener_places = {}
      @default_listener = false
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
      @listen_table.map { |address, options| [address, complete_listen_options(options)] }
    end

    # @return [Boolean] whether nobody has said where to listen, and {#listeners} is what there is by default
    def default_listener?
      @default_listener
    end

    # Listens on these addresses instead of others. One that is there already keeps its options.
    #
    # @param addresses [Array<String>]
    # @param of [Symbol] `:all` to replace all others; `:default` to replace them if nobody has named any
    # @return [void]
    # @raise [ConfigurationError] if one is no address
    # @api private
    def listen_instead(addresses, of:)
      return if of == :default && (@listener_places.values - DEFAULT_ORIGINS).any?

      @verifier.from("command line") do
        wanted = addresses.map { |address| canonical_address(address) }
        @listen_table.select! { |address, _| wanted.include?(address) }
        wanted.each { |address| listen(address) }
      end
    end

    # @param address [String] one of {#listeners}
    # @return [String] where it was made: a line, or such as `command line`
    def place_of_listener(address)
      @listener_places.fetch(address)
    end

    # @param error [SystemCallError] raised while the listeners were bound
    # @return [String] its message, with the place of the listener that it is about
    # @api private
    def locate_bind_error(error)
      # After the address there may be what is wrong with its file.
      address, = listeners.find { |name, _| error.message.match?(/\(#{Regexp.escape(name)}(?:, [^()]*)?\)\z/) }
      missing = File.dirname(address) if error.is_a?(Errno::ENOENT) && address&.start_with?("/")
      [address && place_of_listener(address), "listen", error.message, missing && "make the directory #{missing} first"]
        .compact.join(": ")
    end

    # @return [Array<(Symbol, Object, String)>] name and value of each setting there is, and where it was made: a line,
    #   or such as `default`
    def effective_settings
      SETTING_DEFINITIONS.keys.map do |name|
        value = set[name]
        [name, value, set.place_of(name) || (value == DEFAULTS[name] ? "default" : "follows from others")]
      end
    end

    # @return [Hash{Symbol => Object}] what the native side needs to know, as plain data; times are whole seconds
    def native_settings
      names = %i[worker_processes soft_timeout cleanup_timeout spawn_timeout refork_max_unavailable mold_prepare setpgid
                 max_consecutive_spawn_errors
                 client_body_buffer_size client_header_timeout keepalive_timeout keepalive_requests
                 response_buffer_size
                 client_body_timeout client_min_rate
                 client_max_header_size client_max_body_size write_timeout rewindable_input early_hints
                 check_client_connection]
      names.to_h { |name| [name, set[name]] }
           .merge(service: !set[:before_service_worker_ready].nil?)
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
      unless set.key?(:worker_processes)
        origin = EnvironmentSettings.worker_processes ? "environment" : "default"
        @verifier.from(origin) { set[:worker_processes] = set[:worker_processes] }
      end
      complete_logger
      complete_listeners
      refuse_corked_checks
    end

    def complete_listeners
      return if !RACKUP[:set_listener] && @listen_table.any?

      @default_listener = !RACKUP[:set_listener]
      host = RACKUP[:host]
      host = "[#{host}]" if host.count(":") > 1 && !host.start_with?("[")
      @verifier.from(origin_of_port) { listen("#{host}:#{RACKUP[:port]}") }
    end

    def origin_of_port
      return "command line" if RACKUP[:set_listener]

      EnvironmentSettings.port ? "environment" : "default"
    end

    # Whether a client is there is asked when nothing has been sent yet; an answer that is held back would not tell.
    def refuse_corked_checks
      return unless set[:check_client_connection]

      corked = listeners.find { |_, options| options[:tcp_nopush] } or return
      @verifier.complain("check_client_connection: got true, and tcp_nopush: true for #{corked.first}: " \
                         "wanted one of them at most", at: config_file || "options")
    end

    def set_hook(name, callable, block)
      set[name] = one_of(name, callable, block)
    end

    def one_of(name, value, block)
      @verifier.reject(name, value, "and a block: wanted one of them") if value && block
      block || value
    end

    def canonical_address(address)
      ListenAddress.canonical(address)
    rescue ListenAddress::Invalid => e
      @verifier.reject(:listen, address, e.message)
    end
  end
end

require_relative "configurator/directives/clients"
require_relative "configurator/directives/files"
require_relative "configurator/directives/hooks"
require_relative "configurator/directives/listeners"
require_relative "configurator/directives/logs"
require_relative "configurator/directives/processes"
require_relative "configurator/file_scope"
