# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "address"
require_relative "clock"

module Bench
  # Makes one connection for each request, and judges the answer strictly.
  class Client
    # Why a request failed.
    class Failed < StandardError
      attr_reader :reason, :detail

      def initialize(reason, detail = nil)
        @reason = reason
        @detail = detail
        super([reason, detail].compact.join(": "))
      end
    end

    # A response that is as it should be.
    Answer = Struct.new(:head, :body) do
      # The value of a header field, or nil.
      def field(name) = head[/^#{Regexp.escape(name)}: *(.*?)\r?$/i, 1]
    end

    # ENOENT is how a Unix socket refuses whose file is gone.
    REASONS = { Errno::ECONNREFUSED => :refused, Errno::ENOENT => :refused, Errno::ECONNRESET => :reset,
                Errno::EPIPE => :reset, Errno::ETIMEDOUT => :timeout, Errno::EAGAIN => :"queue full" }.freeze
    CHUNK = 16 * 1024
    STATUS = %r{\AHTTP/1\.1 (\d{3}) }
    LENGTH = /^content-length: *(\d+)\r?$/i

    # Whether the last request got as far as a connection.
    attr_reader :established
    alias established? established

    def initialize(address, timeout: 10)
      @family = address.family
      @sockaddr = address.sockaddr
      @timeout = timeout
      @chunk = String.new(capacity: CHUNK)
    end

    # Gets `path`, sending the request only `pause` seconds after the connection was made.
    # @return [Answer]
    # @raise [Failed]
    def get(path = "/", pause: 0)
      @established = false
      socket = Socket.new(@family, Socket::SOCK_STREAM)
      connect(socket)
      @established = true
      sleep pause if pause.positive?
      socket.write("GET #{path} HTTP/1.1\r\nHost: benchmark\r\nConnection: close\r\n\r\n")
      judge(receive(socket))
    rescue SystemCallError => e
      # A port where nobody listens refuses; a reset tells that there was a connection before.
      @established ||= e.is_a?(Errno::ECONNRESET)
      raise Failed.new(REASONS.fetch(e.class) { e.class.name }, @established ? nil : e.message)
    ensure
      socket&.close
    end

    private

    # Ruby's sockets do not block, so that it is here where the time is limited.
    def connect(socket)
      return if socket.connect_nonblock(@sockaddr, exception: false) != :wait_writable

      raise Failed.new(:timeout, "no connection") unless socket.wait_writable(@timeout)

      error = socket.getsockopt(Socket::SOL_SOCKET, Socket::SO_ERROR).int
      raise SystemCallError.new("connect", error) unless error.zero?
    end

    # Up to the end of file: a reset after the last byte is a failure too.
    def receive(socket)
      answer = +""
      deadline = Bench.now + @timeout
      loop do
        case socket.read_nonblock(CHUNK, @chunk, exception: false)
        when nil then return answer
        when String then answer << @chunk
        else
          left = deadline - Bench.now
          next if left.positive? && socket.wait_readable(left)

          raise Failed.new(:timeout, "#{answer.bytesize} bytes read")
        end
      end
    rescue Errno::ECONNRESET
      raise Failed.new(:reset, "#{answer.bytesize} bytes read")
    end

    def judge(answer)
      raise Failed, :"closed without an answer" if answer.empty?

      head, end_of_head, body = answer.partition("\r\n\r\n")
      status = head[STATUS, 1]
      length = head[LENGTH, 1]
      raise Failed.new(:"malformed answer", answer.byteslice(0, 60).inspect) if end_of_head.empty? || !status || !length
      raise Failed, :"status #{status}" if status != "200"

      cut = body.bytesize != length.to_i
      raise Failed.new(:"short body", "#{body.bytesize} of #{length} bytes") if cut

      Answer.new(head, body)
    end
  end
end
