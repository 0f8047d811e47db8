# frozen_string_literal: true

require "socket"
require_relative "../common/client"
require_relative "../soak/tally"
require_relative "client_process"

module Clients
  # Keep-alive connections that ask for something short, one request after the other with a pause between them, all in
  # one process beside this one.
  class Load
    CHUNK = 16 * 1024
    REQUEST = "GET / HTTP/1.1\r\nHost: benchmark\r\n\r\n"
    ANSWER = %r{\AHTTP/1\.1 \d{3} .*?\r\n\r\n}m
    # How long an answer is waited for.
    PATIENCE = 10
    # The same for a connection: a drain may take as long, and refuses then.
    CONNECT_PATIENCE = 60
    # So often it is looked whether there is one.
    POLL = 0.02
    MOMENT = 0.005
    # After a failure, so that a dead server is not asked a million times.
    REST = 0.05

    # What all loads tell, and besides how often the server has closed a connection that waited for nothing, and when
    # requests began that took long.
    class Tally < Soak::Tally
      # In seconds.
      LONG = 0.02
      # Of a flood only so many are told.
      MOST = 1_000

      attr_accessor :closed_idle, :connects
      attr_reader :long

      def initialize
        super
        @closed_idle = 0
        @connects = 0
        @long = []
      end

      def note(began)
        took = Bench.now - began
        count_ok(took)
        @long << [began, took] if took > LONG && @long.size < MOST
      end
    end

    # @!attribute opening [Socket, nil] what may become a connection
    # @!attribute began_at [Float, nil] when the request was begun that is not answered yet
    # @!attribute sent_at [Float, nil] the same, once it is sent
    # @!attribute due [Float] when the next one is
    # @!attribute over [Boolean] whether there will be none
    Connection = Struct.new(:number, :socket, :opening, :began_at, :sent_at, :due, :answer, :over, keyword_init: true)

    # Runs it while the block runs.
    #
    # @param pause [Float] seconds between an answer and the next request
    # @param until_refused [Boolean] whether a client ends as soon as it is refused
    # @return [Tally]
    def self.during(address, connections:, pause:, until_refused: false)
      load = new(address, connections, pause, until_refused)
      process = ClientProcess.new { |there| there.tell(load.run { there.stopped? }) }
      yield
      process.stop
      process.hear("what became of the requests")
    ensure
      process&.close
    end

    def initialize(address, connections, pause, until_refused)
      @address = address
      @pause = pause
      @until_refused = until_refused
      @chunk = String.new(capacity: CHUNK)
      @tally = Tally.new
      began = Bench.now
      @connections = Array.new(connections) do |number|
        Connection.new(number:, due: began + (pause * number / connections), answer: +"", over: false)
      end
    end

    # Until the block says that it is over, and the last request is answered.
    def run(&is_over)
      began = Bench.now
      until (over = is_over.call) && @connections.none?(&:sent_at)
        now = Bench.now
        @connections.each { |connection| begin_request(connection) if connection.due <= now } unless over
        give_up(now)
        wait
      end
      @tally.duration = Bench.now - began
      @tally
    end

    private

    def wait
      # At least every few milliseconds, because somebody may want this to end.
      next_due = @connections.reject { |connection| connection.sent_at || connection.over }.map(&:due).min
      patience = next_due ? (next_due - Bench.now).clamp(0, 0.02) : 0.02
      sockets = @connections.filter_map { |connection| [connection.socket, connection] if connection.socket }.to_h
      ready, = IO.select(sockets.keys, nil, nil, patience)
      ready&.each { |socket| read(sockets[socket]) }
    end

    def begin_request(connection)
      return if connection.sent_at || connection.over

      connection.began_at ||= Bench.now
      connect(connection) or return connection.due = Bench.now + POLL
      connection.sent_at = connection.began_at
      connection.socket.write_nonblock(REQUEST)
    rescue SystemCallError => e
      fail_with(connection, Bench::Client::REASONS.fetch(e.class) { e.class.name }, e.message)
    end

    # Whether there is a connection. While a server drains, none may be made for a while.
    def connect(connection)
      return true if connection.socket

      @tally.connects += 1 unless connection.opening
      connection.opening ||= Socket.new(@address.family, Socket::SOCK_STREAM)
      2.times do
        result = connection.opening.connect_nonblock(@address.sockaddr, exception: false)
        break if result != :wait_writable
        # Mostly it takes a moment.
        return false unless connection.opening.wait_writable(MOMENT)
      end
      connection.socket = connection.opening
      connection.opening = nil
      true
    rescue Errno::EALREADY
      false
    end

    def read(connection)
      case connection.socket.read_nonblock(CHUNK, @chunk, exception: false)
      when :wait_readable then nil
      when nil then see_end(connection)
      else
        connection.answer << @chunk
        judge(connection)
      end
    rescue SystemCallError => e
      connection.sent_at ? fail_with(connection, Bench::Client::REASONS.fetch(e.class, :reset)) : see_end(connection)
    end

    def see_end(connection)
      return fail_with(connection, :"closed without an answer", "#{connection.answer.bytesize} bytes") if
        connection.sent_at

      @tally.closed_idle += 1
      disconnect(connection)
    end

    def judge(connection)
      head = connection.answer[ANSWER] or return
      missing = head[Bench::Client::LENGTH, 1].to_i + head.bytesize - connection.answer.bytesize
      return if missing.positive?

      reason = fault(connection, head, missing)
      return fail_with(connection, reason, connection.answer.byteslice(0, 60).inspect) if reason

      @tally.note(connection.sent_at)
      finish(connection, @pause)
      disconnect(connection) if head.match?(/^connection: close\r$/i)
    end

    def fault(connection, head, missing)
      status = head[Bench::Client::STATUS, 1]
      return :"status #{status}" if status != "200"

      :"malformed answer" if missing.negative? || !connection.sent_at || !head.match?(Bench::Client::LENGTH)
    end

    def give_up(now)
      @connections.each do |connection|
        patience = connection.sent_at ? PATIENCE : CONNECT_PATIENCE
        late = connection.began_at && now - connection.began_at > patience
        fail_with(connection, :timeout, "#{connection.answer.bytesize} bytes") if late
      end
    end

    def fail_with(connection, reason, detail = nil)
      at = Bench.now
      took = at - connection.began_at.to_f
      @tally.count_failure(Soak::Failure.new(at, connection.number, reason, detail, !connection.socket.nil?, took))
      connection.over = @until_refused && reason == :refused
      disconnect(connection)
      finish(connection, REST)
    end

    def finish(connection, pause)
      connection.began_at = nil
      connection.sent_at = nil
      connection.answer.clear
      connection.due = Bench.now + pause
    end

    def disconnect(connection)
      [connection.socket, connection.opening].compact.each(&:close)
      connection.socket = nil
      connection.opening = nil
    end
  end
end
