# frozen_string_literal: true

module PitchforkRs
  module RackHandler
    # What rackup or Rails hand over to a handler, as a configuration.
    # @api private
    class Options
      # What they keep there for themselves; some of it is called like a directive, and none of it is meant for us.
      FOREIGN = %i[AccessLog DoNotReverseLookup Host Port SSLEnable app builder caching config daemonize debug
                   environment heapfile include log_stdout pid profile_file profile_mode quiet require restart_cmd
                   server user_supplied_options using warn].freeze
      # The port that rackup hands over if it was told none, as an Integer: one that it was told is a String.
      DEFAULT_PORT = 9292
      DEFAULT_HOSTS = %w[localhost 0.0.0.0].freeze
      private_constant :FOREIGN, :DEFAULT_PORT, :DEFAULT_HOSTS

      # @return [Hash{String => String}] each option and what it takes
      def self.described
        { "Host=HOST" => "the host to listen on", "Port=PORT" => "the TCP port to listen on",
          "config_file=FILE" => "read the configuration in FILE (default #{Configurator::DEFAULT_FILE}, if it exists)" }
          .merge(Configurator.textual_directives.except(*FOREIGN).transform_keys { |name| "#{name}=VALUE" })
      end

      # @param options [Hash{Symbol => Object}]
      def initialize(options)
        @given = options.fetch(:user_supplied_options, nil)
        @host = options[:Host] || Configurator::RACKUP[:host]
        @port = options[:Port]
        @directives = options.reject { |name, value| FOREIGN.include?(name) || value.nil? }
      end

      # @return [Configurator]
      # @raise [ConfigurationError] if an option, the file or the environment is wrong
      def configure
        settings = known_directives.to_h { |name, value| [name, Configurator.from_text(name, value)] }
        Configurator::RACKUP.update(host: @host, port: port) if @port
        config = Configurator.new(settings)
        # A host or port that was asked for by name counts more than the file. The starter's default counts less.
        config.listen_instead(addresses, of: address_was_given? ? :all : :default) if @port
        config
      end

      private

      # Callers add to what they hand over from release to release. So a name that is none of ours is theirs, unless it
      # looks like a mistake.
      def known_directives
        names = [:config_file, *Configurator.directives]
        @directives.select { |name, _| names.include?(name) || Configurator.resembles_directive?(name) }
      end

      # Rails says what it was told, rackup only lets it be seen.
      def address_was_given?
        return (@given & %i[Host Port]).any? if @given

        @port != DEFAULT_PORT || !DEFAULT_HOSTS.include?(@host)
      end

      def port
        unless @port.to_s.match?(/\A\d{1,5}\z/) && @port.to_i <= 65_535
          raise ConfigurationError, "options: Port: got #{@port.inspect}, wanted an Integer from 0 to 65535"
        end

        (Configurator::EnvironmentSettings.port unless address_was_given?) || @port.to_i
      end

      # A name that developers have for two addresses has to lead to the server with either.
      def addresses
        return ["#{bracketed(@host)}:#{port}"] unless @host == "localhost"

        own = Socket.ip_address_list.map(&:ip_address)
        hosts = Addrinfo.getaddrinfo(@host, nil, nil, :STREAM).map(&:ip_address).uniq & own
        hosts.empty? ? ["#{@host}:#{port}"] : hosts.map { |host| "#{bracketed(host)}:#{port}" }
      rescue SocketError
        ["#{@host}:#{port}"] # whoever reads the addresses says what is wrong with it
      end

      def bracketed(host)
        host.count(":") > 1 && !host.start_with?("[") ? "[#{host}]" : host
      end
    end
  end
end
