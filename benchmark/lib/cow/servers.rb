# frozen_string_literal: true

require_relative "../common/address"
require_relative "../run/contender"
require_relative "../soak/process_table"
require_relative "load"
require_relative "subject"

module Cow
  # The application in several processes of a server.
  class Server < Subject
    private

    def start
      @address = Bench::Address.free
      @load = Load.new(@address)
      @session = session(*command)
      wait_until("listening") { listens? }
    end

    def listens?
      TCPSocket.new("127.0.0.1", @address.port).close
      true
    rescue Errno::ECONNREFUSED
      false
    end

    def row(role, pid)
      Row.of(role, pid, code_bytes: @load.code_bytes[pid], calls: @load.answered[pid])
    end

    # So that bytes of machine code are those of now, each worker is asked once more.
    def send_requests
      @load.send_requests(amounts.requests)
      @load.ask_each(1) { workers }
    end
  end

  # This server: before and after a refork.
  class Pitchfork < Server
    NAME = "pitchfork-rs"
    TITLE = NAME

    def stages
      @load.ask_each(amounts.warm) { workers }
      warm = sample
      @session.signal(:USR2)
      wait_until("the end of the refork") { settled?(children, 1) }
      @load.ask_each(amounts.first) { workers }
      forked = sample
      send_requests
      { warm:, forked:, later: sample }
    end

    private

    def command
      config = path("config.rb")
      File.write(config, <<~RUBY)
        worker_processes #{amounts.workers}
        listen #{@address.directive.dump}
        #{application.hooks}
      RUBY
      [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/pitchfork-rs", "-E", "production", "-c", config, CONFIG]
    end

    def children = Soak::ProcessTable.children_of(@session.pid).sort_by { |child| [child.kind, child.nr.to_i] }

    def workers
      there = children.select { |child| child.worker? && child.ready? }
      there.map(&:pid) if there.size == amounts.workers
    end

    # One mold, each worker of its generation, and nobody else that is coming or going.
    def settled?(children, generation)
      children.map(&:role) == ["mold", *Array.new(amounts.workers) { |number| "worker[#{number}]" }] &&
        children.all? { |child| child.ready? && child.generation == generation }
    end

    def sample
      Sample.new(children.map { |child| row(child.role, child.pid) }, row("monitor", @session.pid))
    end
  end

  # Puma with the application loaded before it forks, and one thread in each worker, as here.
  class Puma < Server
    NAME = "puma"
    TITLE = "puma --preload"
    WORKER = /\Apuma: cluster worker (\d+):/

    def self.absence
      "it is not installed" unless Run::CONTENDERS.find { |contender| contender.name == NAME }.there?
    end

    def stages
      @load.ask_each(amounts.warm) { workers }
      warm = sample
      send_requests
      { warm:, later: sample }
    end

    private

    def command
      ["puma", "-w", amounts.workers.to_s, "-t", "1:1", "--preload", "-e", "production", "--no-config",
       "-b", "tcp://#{@address}", CONFIG]
    end

    # In the order of their numbers.
    def workers
      numbers = @session.members.to_h { |pid| [pid, File.binread("/proc/#{pid}/cmdline")[WORKER, 1]&.to_i] }.compact
      numbers.keys.sort_by(&numbers) if numbers.size == amounts.workers
    end

    def sample
      rows = workers.each_with_index.map { |pid, number| row("worker #{number}", pid) }
      Sample.new([row("master", @session.pid), *rows])
    end
  end
end
