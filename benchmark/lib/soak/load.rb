# frozen_string_literal: true

require_relative "../common/client"
require_relative "tally"

module Soak
  # Clients that ask without a pause, each in a process of its own: threads of one process would wait for each other's
  # lock, and that would be measured.
  class Load
    # A client ends by itself after this time, should nobody be left to tell it to.
    LONGEST = 600
    # After a failure, so that a dead server is not asked a million times.
    PAUSE = 0.01

    # @param until_refused [Boolean] whether a client ends as soon as it is refused
    # @param late [Float] how long every fourth client waits between connecting and asking
    def initialize(address, clients:, until_refused: false, late: 0, timeout: 10)
      @address = address
      @clients = clients
      @until_refused = until_refused
      @late = late
      @timeout = timeout
      @pipes = {}
    end

    # Runs the load while the block runs. Yields self.
    def run
      @clients.times { |number| start(number) }
      yield self
    ensure
      abandon
    end

    # Ends the load after the requests in hand, and adds up.
    def stop
      @pipes.each_key { |pid| Process.kill(:TERM, pid) }
      finish
    end

    # Waits until every client has ended by itself, and adds up.
    def finish
      total = Tally.new
      until @pipes.empty?
        pid, pipe = @pipes.first
        bytes = pipe.read
        reap(pid)
        raise "client #{pid} died" if bytes.empty?

        total.merge(Marshal.load(bytes)) # rubocop:disable Security/MarshalLoad -- from our own child
      end
      total
    end

    private

    def start(number)
      reader, writer = IO.pipe(binmode: true)
      pid = fork do
        reader.close
        serve_client(number, writer)
      ensure
        exit!
      end
      writer.close
      @pipes[pid] = reader
    end

    def abandon
      @pipes.keys.each do |pid| # rubocop:disable Style/HashEachMethods -- it shrinks meanwhile
        Process.kill(:KILL, pid)
        reap(pid)
      end
    end

    def reap(pid)
      Process.wait(pid)
      @pipes.delete(pid).close
    end

    # In the child.
    def serve_client(number, writer)
      @stopped = false
      # A terminal sends its signals to the parent as well, which then cleans up.
      %w[TERM INT HUP].each { |signal| trap(signal) { @stopped = true } }
      tally = ask_on(number)
      writer.write(Marshal.dump(tally))
      writer.close
    end

    def ask_on(number)
      client = Bench::Client.new(@address, timeout: @timeout)
      tally = Tally.new
      pause = number % 4 == 3 ? @late : 0
      began = Bench.now
      until @stopped || Bench.now > began + LONGEST
        failure = ask(client, number, pause, tally) or next
        break if @until_refused && failure.reason == :refused

        sleep PAUSE
      end
      tally.duration = Bench.now - began
      tally
    end

    # The failure, if it is one.
    def ask(client, number, pause, tally)
      began = Bench.now
      client.get("/", pause: pause)
      tally.count_ok(Bench.now - began)
      nil
    rescue Bench::Client::Failed => e
      at = Bench.now
      failure = Failure.new(at, number, e.reason, e.detail, client.established?, at - began)
      tally.count_failure(failure)
      failure
    end
  end
end
