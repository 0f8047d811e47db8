# frozen_string_literal: true

module PitchforkRs
  # The directive about addresses.
  class Configurator
    LISTEN_OPTIONS = { backlog: ValueCheck.integer(1) }.freeze
    LISTEN_DEFAULTS = { backlog: 1024 }.freeze
    private_constant :LISTEN_OPTIONS, :LISTEN_DEFAULTS

    # @!group Directives

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
      @listener_places[canonical] ||= @verifier.place
      @listen_table[canonical] = @listen_table.fetch(canonical, {}).merge(options)
    end
    directive_method :listen

    # @!endgroup
  end
end
