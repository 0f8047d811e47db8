# frozen_string_literal: true

require "socket"
require_relative "among"
require_relative "outcome"

module Corpus
  # Sends the bytes of a case and reads the answer.
  class Player
    PATIENCE = 10
    # Up to this size a request is also sent byte by byte.
    SMALL = 256
    # SIOCOUTQ: on a Unix socket, how much the peer has not read yet.
    UNREAD = 0x5411
    # Requests that are sent with that of a case.
    BEFORE = "GET /before HTTP/1.1\r\nHost: example.org\r\n\r\n"
    BEHIND = "GET /behind HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"
    private_constant :PATIENCE, :SMALL, :UNREAD, :BEFORE, :BEHIND

    # @param directory [String] where the application's journal is
    # @param log [String] path of the server's log
    # @param connect [Hash{Symbol => Proc}] `whole:` and `cut:`, each making a connection; the latter of a Unix socket,
    #   on which it is certain that the server has read one piece before it gets the next
    # @param random [Random] for the cuts
    def initialize(directory, log:, connect:, random: Random.new)
      @journal = File.join(directory, "journal")
      @log = log
      @connect = connect
      @random = random
    end

    # In all ways in which it can be cut.
    def play_all_ways(kase)
      cuts = kase["cuts"] == false ? [] : cuts_of(kase.request.bytesize)
      [play(kase), *cuts.map { |way, cut| play(kase, way, cut) }]
    end

    # Among other requests on one connection: behind one, and before one in the same bytes, each whole and cut.
    # @return [Array<Among>]
    def play_among(kase)
      [[true, false], [false, true], [true, true]].flat_map do |has_before, has_behind|
        bytes = "#{BEFORE if has_before}#{kase.request}#{BEHIND if has_behind}".b
        cuts = kase["cuts"] == false ? [] : Array.new(2) { some_cuts(bytes.bytesize) }
        [[], *cuts].map do |cut|
          way = "#{"behind a request " if has_before}#{"before a request " if has_behind}cut at #{cut}"
          outcome = note(way) { exchange_among(cut.empty? ? :whole : :cut, slices(bytes, cut)) }
          Among.new(outcome, has_before, has_behind)
        end
      end
    end

    # Of a response, also through Rack::Lint.
    def play_linted(kase) = note("through Lint") { exchange(:whole, [kase.linted_request], kase) }

    def play(kase, way = "whole", cuts = [])
      note(way) { exchange(cuts.empty? ? :whole : :cut, slices(kase.request, cuts), kase) }
    end

    private

    def note(way)
      marks = [@journal, @log].map { |path| File.exist?(path) ? File.size(path) : 0 }
      bytes = yield
      events = settled { tail(@journal, marks.first) }
      Outcome.new(way, bytes, events, tail(@log, marks.last))
    end

    # What the application noted, once it has nothing more to note: the client may see the end of a response earlier.
    def settled
      deadline = now + 2
      loop do
        # A line that has no end yet is still being written.
        lines = yield.lines.select { |line| line.end_with?("\n") }
        events = lines.map { |line| Marshal.load(line.unpack1("m")) } # rubocop:disable Security/MarshalLoad
        started = events.count { |event| event["event"] == "call" && event["env"].key?("rack.response_finished") }
        return events if now > deadline || events.count { |event| event["event"] == "finished" } >= started

        sleep 0.001
      end
    end

    def tail(path, mark) = File.exist?(path) ? File.binread(path, nil, mark).to_s : ""

    def cuts_of(size)
      ways = Array.new(3) { some_cuts(size) } if size > 1
      ways = (ways || []).to_h { |cuts| ["cut at #{cuts.join(", ")}", cuts] }
      ways["byte by byte"] = [*1...size] if size.between?(2, SMALL)
      ways
    end

    def some_cuts(size) = Array.new(@random.rand(1..4)) { @random.rand(1...size) }.uniq.sort

    def slices(bytes, cuts)
      [0, *cuts, bytes.bytesize].each_cons(2).map { |from, to| bytes.byteslice(from, to - from) }
    end

    # Whoever stays connected has said all it has to say.
    def exchange_among(kind, pieces)
      socket = @connect.fetch(kind).call
      send_pieces(socket, pieces, wait: kind == :cut)
      socket.close_write
      read(socket)
    rescue Errno::EPIPE, Errno::ECONNRESET, Errno::ENOTCONN
      read(socket)
    ensure
      socket&.close
    end

    def exchange(kind, pieces, kase)
      socket = @connect.fetch(kind).call
      send_pieces(socket, pieces, wait: kind == :cut)
      received = kase.waits? ? read(socket, until_match: /\r\n\r\n\z/n) : +""
      socket.write(kase.content) if received.start_with?("HTTP/1.1 100")
      socket.close_write if kase["client"] == "half-closes"
      received << read(socket)
    rescue Errno::EPIPE, Errno::ECONNRESET, Errno::ENOTCONN
      received.to_s + read(socket)
    ensure
      socket&.close
    end

    # A server that refuses a request may close before it has read all of it.
    def send_pieces(socket, pieces, wait:)
      pieces.each.with_index(1) do |piece, number|
        socket.write(piece)
        wait_until_read(socket) if wait && number < pieces.size
      end
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    end

    def wait_until_read(socket)
      unread = [0].pack("i")
      5_000.times do
        socket.ioctl(UNREAD, unread)
        return if unread.unpack1("i").zero? || socket.wait_readable(0)

        sleep 0.00005
      end
    end

    def read(socket, until_match: nil)
      received = +"".b
      deadline = now + PATIENCE
      loop do
        socket.wait_readable([deadline - now, 0].max) || raise("no end after #{received[0, 200].inspect}")
        received << socket.readpartial(65_536)
        return received if until_match&.match?(received)
      end
    rescue EOFError, Errno::ECONNRESET
      received
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
