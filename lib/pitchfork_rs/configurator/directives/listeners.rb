# frozen_string_literal: true

module PitchforkRs
  # The directive about addresses.
  class Configurator
    LISTEN_OPTIONS = {
      backlog: ValueCheck.integer(1),
      rcvbuf: ValueCheck.integer(1),
      sndbuf: ValueCheck.integer(1),
      tcp_nodelay: ValueCheck.boolean,
      tcp_nopush: ValueCheck.boolean,
      tcp_defer_accept: ValueCheck.new("true, false or an Integer of seconds from 0 to 32767") do |value|
        [true, false].include?(value) || (value.is_a?(Integer) && value.between?(0, 32_767))
      end,
      ipv6only: ValueCheck.boolean,
      reuseport: ValueCheck.boolean,
      queues: ValueCheck.new("an Integer from 1 to 1024") { |value| value.is_a?(Integer) && value.between?(1, 1024) },
      queues_per_worker: ValueCheck.integer(1),
      umask: ValueCheck.new("an Integer from 0 to 0777") do |value|
        value.is_a?(Integer) && value.between?(0, 0o777)
      end,
      tries: ValueCheck.new("an Integer") { |value| value.is_a?(Integer) },
      delay: ValueCheck.new("a number of seconds of at least 0") do |value|
        value.is_a?(Numeric) && value.real? && value.finite? && value >= 0
      end
    }.freeze
    LISTEN_DEFAULTS = {
      backlog: 1024, rcvbuf: nil, sndbuf: nil, tcp_nodelay: true, tcp_nopush: false, tcp_defer_accept: 1,
      ipv6only: nil, reuseport: false, queues: 1, queues_per_worker: nil, umask: 0, tries: 5, delay: 0.5
    }.freeze
    # What the kernel takes for a number; it has smaller limits of its own, and applies them silently.
    LARGEST_INT = 0x7fff_ffff
    private_constant :LISTEN_OPTIONS, :LISTEN_DEFAULTS, :LARGEST_INT

    # @!group Directives

    # Adds an address to listen on: a port, `"host:port"`, `"*:port"`, `"[IPv6]:port"`, or a Unix socket as
    # `"/path.sock"`, `"~/path.sock"` or `"unix:path.sock"`, the last relative to the working directory. A host name is
    # resolved once, here. An address given twice is kept once, with the options of both. Without any the server listens
    # on `0.0.0.0:8080`, or at the port of the environment variable `PORT`.
    #
    # An option that means nothing to its kind of address (`umask` to a port, `tcp_nodelay` to a Unix socket, `ipv6only`
    # to an IPv4 address) has no effect, so that one Hash of options does for all addresses. `nil` stands for the
    # default of each.
    #
    # @param address [Integer, String]
    # @param options [Hash]
    # @option options [Integer] :backlog connections that may wait to be accepted, at least 1 (default 1024), in all
    #   queues together
    # @option options [Integer] :rcvbuf size of a connection's receive buffer in bytes, at least 1 (default: up to the
    #   kernel, which knows better)
    # @option options [Integer] :sndbuf the same of its send buffer
    # @option options [Boolean] :tcp_nodelay whether what is written is sent at once (default true)
    # @option options [Boolean] :tcp_nopush whether only full packets are sent, until the response is complete or 200 ms
    #   have passed (default false)
    # @option options [Integer, Boolean] :tcp_defer_accept for how many seconds the kernel keeps a connection back while
    #   nothing is sent on it; true is for 1 (the default), false for 0
    # @option options [Boolean] :ipv6only whether an IPv6 address leaves IPv4 clients alone (default: up to the system,
    #   most of which let them in)
    # @option options [Boolean] :reuseport whether other servers that say so too may listen on the port (default false)
    # @option options [Integer] :queues how many queues connections are shared out to by the kernel, from 1 (the
    #   default) to 1024; for ports only
    # @option options [Integer] :queues_per_worker how many of the queues each worker serves, at least 1 (default: all
    #   but one)
    # @option options [Integer] :umask which permissions the file of a Unix socket shall not have, from 0 (the default)
    #   to 0777
    # @option options [Integer] :tries how often to try again while the address is in use (default 5); for ever if it is
    #   negative
    # @option options [Numeric] :delay seconds between two attempts, at least 0 (default 0.5)
    # @raise [ConfigurationError]
    def listen(address, options = {})
      canonical, options = verify_listener(address, options)
      @listener_places[canonical] ||= @verifier.place
      @listen_table[canonical] = options
    end
    directive_method :listen

    # @!endgroup

    # @param address [Integer, String] as for {#listen}
    # @param options [Hash] as for {#listen}; an address that was configured has its options by default
    # @return [Array<(String, Hash)>] the address as in {#listeners}, and all its options
    # @raise [ConfigurationError]
    # @api private
    def resolve_listener(address, options = {})
      canonical, options = verify_listener(address, options)
      [canonical, complete_listen_options(options)]
    end

    private

    def verify_listener(address, options)
      made = options.is_a?(Hash) ? options.reject { |name, value| value.nil? && LISTEN_OPTIONS.key?(name) } : options
      @verifier.verify_options(:listen, made, LISTEN_OPTIONS)
      canonical = canonical_address(address)
      if canonical.start_with?("/") && made.fetch(:queues, 1) > 1
        @verifier.reject("listen: queues", made[:queues], "wanted 1: a Unix socket has one queue")
      end
      [canonical, @listen_table.fetch(canonical, {}).merge(options)]
    end

    def complete_listen_options(options)
      LISTEN_DEFAULTS.merge(options.compact).tap do |complete|
        complete[:queues_per_worker] ||= [complete[:queues] - 1, 1].max
        %i[backlog rcvbuf sndbuf queues_per_worker].each do |name|
          complete[name] = complete[name]&.clamp(1, LARGEST_INT)
        end
        complete[:tcp_defer_accept] = { true => 1, false => 0 }.fetch(complete[:tcp_defer_accept], &:itself)
      end
    end
  end
end
