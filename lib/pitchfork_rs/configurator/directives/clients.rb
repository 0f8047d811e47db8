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

    # @!method keepalive_timeout(seconds)
    #   How long a connection is kept open for the next request after a response. The default is 65; 0 is for one
    #   request per connection.
    #   @param seconds [Numeric] 0 or more
    #   @raise [ConfigurationError]
    directive :keepalive_timeout, ValueCheck.seconds_or_zero, default: 65

    # @!method keepalive_requests(number)
    #   How many requests a connection is good for; then it is closed. The default is 1000.
    #   @param number [Integer] at least 1
    #   @raise [ConfigurationError]
    directive :keepalive_requests, ValueCheck.integer(1), default: 1000

    # @!method response_buffer_size(bytes)
    #   How many bytes of a response are taken off a worker's hands when the client does not take them at once: the
    #   worker is free for others then. A file's rest counts as nothing, and a body that is iterated stays with the
    #   worker, since it is sent as it is made. The default is 1 MiB; 0 lets the worker wait.
    #   @param bytes [Integer] 0 or more
    #   @raise [ConfigurationError]
    directive :response_buffer_size, ValueCheck.integer(0), default: 1024 * 1024

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
    #   being kept: it reaches the application before it is complete, and one in chunks has no length. The default is
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
