# frozen_string_literal: true

require "rbconfig"
require_relative "../common/address"
require_relative "../common/client"
require_relative "../common/session"

module Instructions
  # The server below valgrind, which counts.
  class Callgrind
    ROOT = File.expand_path("../../..", __dir__)
    APP = File.expand_path("app.ru", __dir__)
    # With so many, one always waits: whether the worker comes to rest between two requests would depend on time.
    CLIENTS = 4
    # Everything takes some fifty times as long.
    PATIENCE = 120
    # Whatever the surroundings say must not change what the server does. With YJIT it would depend on time.
    ENVIRONMENT = %w[RACK_ENV PORT WEB_CONCURRENCY RUBYOPT].to_h { |name| [name, nil] }.freeze

    # @param directory [String] an empty one, for configuration and log
    def initialize(directory)
      @directory = directory
    end

    # What the only worker executes from its beginning (that of the processes that it was forked from included) to its
    # end, with so many requests in between: a multiple of {CLIENTS}.
    # @return [Integer] instructions
    def count(requests)
      address = Bench::Address.free
      session = start(address)
      worker = wait_for(session, /worker=0 gen=0 pid=(\d+) ready/)
      ask(address, requests)
      session.signal(:TERM)
      Bench.wait_until("the server's end", seconds: PATIENCE) { session.ended? }
      Integer(wait_for(session, /^==#{worker}== Collected : (\d+)$/))
    ensure
      session&.kill
    end

    private

    def ask(address, requests)
      clients = Array.new(CLIENTS) do
        Thread.new do
          Thread.current.report_on_exception = false
          client = Bench::Client.new(address, timeout: PATIENCE)
          (requests / CLIENTS).times { client.get }
        end
      end
      clients.each(&:join)
    ensure
      clients&.each(&:kill)
    end

    def start(address)
      config = File.join(@directory, "config.rb")
      File.write(config, "worker_processes 1\nlisten #{address.directive.dump}\n" \
                         "spawn_timeout #{PATIENCE}\ntimeout #{PATIENCE}\n")
      Bench::Session.new("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                         RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/pitchfork-rs", "-c", config, APP,
                         log: File.join(@directory, "log"), environment: ENVIRONMENT)
    end

    def wait_for(session, pattern)
      Bench.wait_until("#{pattern.inspect} in the log", seconds: PATIENCE) do
        found = File.read(session.log)[pattern, 1]
        raise Bench::Stuck, "the server has ended: no #{pattern.inspect}" if !found && session.ended?

        found
      end
    rescue Bench::Stuck => e
      raise Bench::Stuck, "#{e.message}\n#{session.log_tail}"
    end
  end
end
