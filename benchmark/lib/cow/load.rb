# frozen_string_literal: true

require_relative "../common/client"
require_relative "../common/clock"
require_relative "app/probe"

module Cow
  # Asks a server that runs the application behind Probe, and notes who has answered.
  class Load
    CONNECTIONS = 8
    # The first answer may take long.
    TIMEOUT = 60

    # How often each process has answered up to now, by pid.
    attr_reader :answered
    # Bytes of machine code in each process that was asked to linger, by pid; nil without YJIT.
    attr_reader :code_bytes

    def initialize(address)
      @address = address
      @answered = Hash.new(0)
      @code_bytes = {}
    end

    # Some at a time, as fast as answers come. Raises Bench::Client::Failed.
    def send_requests(count, path = "/")
      shares = Array.new(count).each_slice((count / CONNECTIONS.to_f).ceil)
      clients = shares.map do |share|
        Thread.new do
          Thread.current.report_on_exception = false # `value` raises it here
          client = Bench::Client.new(@address, timeout: TIMEOUT)
          share.map { client.get(path) }
        end
      end
      clients.flat_map(&:value).each { |answer| note(answer) }
    end

    # Until each of these processes has answered so often from now on. The block returns their pids, or nil as long as
    # they are not all there.
    def ask_each(times, seconds: 120)
      before = answered.dup
      Bench.wait_until("#{times} answers of each worker", seconds:, poll: 0) do
        send_requests(CONNECTIONS, "/?#{Probe::LINGER}")
        yield&.all? { |pid| answered[pid] - before.fetch(pid, 0) >= times }
      end
    end

    private

    def note(answer)
      pid = Integer(answer.field(Probe::PROCESS))
      answered[pid] += 1
      code = answer.field(Probe::CODE) or return
      code_bytes[pid] = code.empty? ? nil : Integer(code)
    end
  end
end
