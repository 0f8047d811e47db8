# frozen_string_literal: true

require_relative "../scenario"

module Soak
  # The load must be able to see a failure, or all the others prove nothing: it is pointed at servers that fail on
  # purpose, and at the real one, killed instead of drained.
  class SelfCheck < Scenario
    NAME = "self-check"
    CLIENTS = 4
    LONG = 0.4
    LINGER_OFF = [1, 0].pack("ii")
    HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"

    # What each does with a connection, and what the load has to call it.
    FAULTS = {
      "status 500": ->(socket) { answer(socket, "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops") },
      "short body": ->(socket) { answer(socket, "#{HEAD}12345") },
      "malformed answer": ->(socket) { answer(socket, "hello") },
      "closed without an answer": ->(socket) { answer(socket, "") },
      reset: ->(socket) { reset(socket) },
      timeout: ->(socket) { (@kept ||= []) << socket }
    }.freeze

    class << self
      def answer(socket, text)
        socket.readpartial(1000)
        socket.write(text)
        socket.close
      end

      def reset(socket)
        socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, LINGER_OFF)
        socket.close
      end
    end

    private

    def perform
      check_success
      FAULTS.each { |reason, fault| check(reason) { |socket| self.class.instance_exec(socket, &fault) } }
      check_refusal
      check_kill
    end

    def check_success
      tally = load_against { |socket| self.class.answer(socket, "#{HEAD}1234567890") }
      report.expect("an answer counts as one", tally.ok.positive? && tally.failed_count.zero?, tally.reasons)
    end

    # One connection in two fails.
    def check(reason, &fault)
      served = 0
      tally = load_against do |socket|
        (served += 1).even? ? fault.call(socket) : self.class.answer(socket, "#{HEAD}1234567890")
      end
      seen = tally.failed.keys.map(&:first).uniq
      report.expect("a fault is seen: #{reason}", tally.ok.positive? && seen == [reason],
                    "#{tally.ok} ok, #{tally.reasons}")
    end

    def check_refusal
      server = TCPServer.new("127.0.0.1", 0)
      address = Bench::Address.new("127.0.0.1:#{server.addr[1]}")
      server.close
      tally = run_load(address)
      only_refused = tally.refused == tally.requests && tally.lost.zero?
      report.expect("a refusal is no loss", only_refused && tally.refused.positive?, tally.reasons)
    end

    # The same as a drain, but for the signal.
    def check_kill
      with_server do |server|
        tally = nil
        Load.new(server.address, clients: 32, until_refused: true).run do |load|
          sleep LONG
          server.signal(:KILL)
          Bench.wait_until("the end") { server.ended? && server.survivors.empty? }
          tally = load.finish
        end
        report.expect("a killed server loses somebody", tally.lost.positive?, tally.reasons)
      end
    end

    def load_against(&)
      server = TCPServer.new("127.0.0.1", 0)
      pid = fork do
        trap("INT") { exit! }
        serve(server, &)
      end
      run_load(Bench::Address.new("127.0.0.1:#{server.addr[1]}"))
    ensure
      server&.close
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end

    def serve(server)
      loop do
        yield server.accept
      rescue EOFError, SystemCallError
        nil
      end
    end

    def run_load(address)
      Load.new(address, clients: CLIENTS, timeout: LONG / 2).run do |load|
        sleep LONG
        load.stop
      end
    end
  end
end
