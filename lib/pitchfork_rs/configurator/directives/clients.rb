# frozen_string_literal: true

module PitchforkRs
  # The directives about clients, their requests and the responses to them.
  class Configurator
    # @!group Directives

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

    # @!method check_client_connection(check)
    #   Whether a client that has left before the application is called costs no call. A client of a port that has only
    #   ended its own side counts as gone. The default is false. Together with a listener's `tcp_nopush: true` it is
    #   refused.
    #   @param check [Boolean]
    #   @raise [ConfigurationError]
    directive :check_client_connection, ValueCheck.boolean, default: false

    # @!endgroup
  end
end
