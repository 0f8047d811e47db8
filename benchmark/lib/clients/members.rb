# frozen_string_literal: true

require "socket"

module Clients
  # A client that does next to nothing, once a second: it is called when it is its turn.
  class Member
    CHUNK = 16 * 1024
    # So often it reads at the end: a reader's buffer is not as large.
    LOOKS = 2

    # What became of one connection. `outcome` is `:answered`, `:closed` (an orderly end of file without an answer),
    # `:cut` (the same within one), `:reset`, `:refused`, `:timeout` or a status.
    End = Struct.new(:at, :kind, :outcome)

    # Whether it has come as far as it is meant to: others may be measured now.
    attr_reader :settled
    alias settled? settled

    # @param number [Integer]
    # @param ends [Array<End>] where it notes what becomes of its connections
    def initialize(address, number, ends)
      @address = address
      @number = number
      @ends = ends
      @settled = false
      @over = false
    end

    # Its turn.
    def turn(lap)
      return if @over || (@socket && rests?(lap))

      noting_ends { @socket ? go_on : connect }
    end

    # Looks whether the end has come that it would have seen later: one who reads slowly has still something to read.
    def look_ahead
      noting_ends { ended(outcome) if LOOKS.times.any? { receive } } if @socket
    end

    def close
      @socket&.close
      @socket = nil
    end

    # Whether it has a connection.
    def open? = !@socket.nil?

    private

    def noting_ends
      yield
    rescue Errno::EALREADY
      nil # still connecting
    rescue Errno::ECONNREFUSED
      @over = true
      ended(:refused)
    rescue Errno::ECONNRESET, Errno::EPIPE
      ended(:reset)
    rescue Errno::ETIMEDOUT
      ended(:timeout)
    end

    def kind = self.class::KIND

    # Whether there is nothing to do for it this time.
    def rests?(_lap) = false

    def connect
      @opening ||= Socket.new(@address.family, Socket::SOCK_STREAM).tap { |socket| prepare(socket) }
      return if @opening.connect_nonblock(@address.sockaddr, exception: false) == :wait_writable

      @socket = @opening
      @opening = nil
      @answer = +""
      @sent = 0
      begin_request
    end

    def prepare(socket); end

    # Takes what there is, up to `most` bytes. `true` if the end of file has come.
    def receive(most = CHUNK)
      case (bytes = @socket.read_nonblock(most, exception: false))
      when :wait_readable then false
      when nil then true
      else
        @answer << bytes
        false
      end
    end

    def ended(outcome)
      @ends << End.new(Bench.now, kind, outcome)
      @opening&.close
      @opening = nil
      close
    end

    # What the end of file means.
    def outcome
      head, end_of_head, body = @answer.partition("\r\n\r\n")
      return @answer.empty? ? :closed : :cut if end_of_head.empty?

      status = head[%r{\AHTTP/1\.1 (\d{3}) }, 1]
      return :"status #{status}" if status != "200"

      body.bytesize == head[/^content-length: *(\d+)/i, 1].to_i ? :answered : :cut
    end
  end

  # Sends a request a byte a second: every second one the head, the others a body.
  class Sender < Member
    KIND = :senders
    HEAD = "GET / HTTP/1.0\r\n\r\n"
    BODY = "18 bytes of a body"
    POST = "POST / HTTP/1.1\r\nHost: benchmark\r\nConnection: close\r\nContent-Length: #{BODY.bytesize}\r\n\r\n".freeze

    private

    def begin_request
      @socket.write(POST) if @number.odd?
      go_on
      @settled = true
    end

    def go_on
      return ended(outcome) if receive

      slow = @number.odd? ? BODY : HEAD
      @sent += @socket.write_nonblock(slow.byteslice(@sent, 1)) if @sent < slow.bytesize
    end
  end

  # Takes a large response a byte a second.
  class Reader < Member
    KIND = :readers
    REQUEST = "GET /large HTTP/1.1\r\nHost: benchmark\r\nConnection: close\r\n\r\n"
    # As small as the kernel allows.
    BUFFER = 1

    private

    def prepare(socket)
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_RCVBUF, BUFFER)
    end

    def begin_request
      @socket.write(REQUEST)
    end

    def go_on
      return ended(outcome) if receive(1)

      @settled = true unless @answer.empty?
    end
  end

  # Has asked once, and keeps its connection.
  class Idler < Member
    KIND = :idle
    REQUEST = "GET / HTTP/1.1\r\nHost: benchmark\r\n\r\n"
    ANSWER = %r{\AHTTP/1\.1 200 .*\r\n\r\n.*bytes\n\z}m
    # It looks at its connection that seldom.
    LAPS = 4

    private

    def rests?(lap) = settled? && lap % LAPS != @number % LAPS

    def begin_request
      @socket.write(REQUEST)
    end

    def go_on
      if receive
        @over = true
        return ended(outcome)
      end
      @settled = true if @answer.match?(ANSWER)
    end

    def outcome = settled? ? :closed : super
  end
end
