# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "socket"
require "tmpdir"
require_relative "client"
require_relative "process_table"

module Soak
  # A server in a session of its own, observed from outside, and stopped in any case.
  class Server
    ROOT = File.expand_path("../../..", __dir__)
    APP = File.expand_path("app", __dir__)
    STOP_WITHIN = 30

    attr_reader :monitor, :address, :status, :log

    # Whether the directory shall stay.
    attr_writer :keep

    # Starts one in a new directory, yields it, and stops it. The directory stays if the block raises.
    def self.run(workers: 4, unix: false)
      directory = Dir.mktmpdir("pitchfork-rs-soak-")
      server = new(directory, workers, unix)
      server.keep = true
      server.start
      yield server
    ensure
      server&.stop
      server&.clean_up
    end

    def initialize(directory, workers, unix)
      @directory = directory
      @workers = workers
      @address = Address.new(unix ? File.join(directory, "soak.sock") : "127.0.0.1:#{free_port}")
      @log = File.join(directory, "server.log")
    end

    def start
      environment = { "SOAK_LISTEN" => @address.directive, "SOAK_WORKERS" => @workers.to_s }
      @monitor = fork do
        Process.setsid
        exec(environment, RbConfig.ruby, "-I", "#{ROOT}/lib", "#{ROOT}/exe/pitchfork-rs", "-c", "#{APP}/pitchfork.rb",
             "#{APP}/config.ru", in: File::NULL, out: @log, err: %i[child out], close_others: true)
      end
      wait_until("all workers ready") { complete? }
    end

    def signal(name)
      Process.kill(name, @monitor)
    end

    def children = ProcessTable.children_of(@monitor)
    def molds = children.select(&:mold?)
    def generation = molds.filter_map(&:generation).max

    # Whether there is a mold, and a ready worker for each number.
    def complete?(now_there = children)
      numbers = now_there.select { |child| child.worker? && child.ready? }.map(&:nr)
      now_there.any? { |child| child.mold? && child.ready? } && numbers.uniq.size == @workers
    end

    # Besides, nobody is coming or going, and all are of one generation.
    def settled?(now_there = children)
      now_there.size == @workers + 1 && now_there.map(&:generation).uniq.size == 1 && complete?(now_there)
    end

    # A refork that was asked for during another one follows it at once: settled means settled for a while.
    def wait_until_settled(beyond: -1, seconds: 60)
      since = nil
      wait_until("settled beyond generation #{beyond}", seconds: seconds, poll: 0.02) do
        since = settled? && generation > beyond ? since || Soak.now : nil
        since && Soak.now - since > 0.5
      end
    end

    def wait_until(what, seconds: 30, poll: 0.01)
      Soak.wait_until(what, seconds: seconds, poll: poll) do
        raise Stuck, "the server ended (#{status}) while waiting: #{what}" if ended?

        yield
      end
    rescue Stuck => e
      raise Stuck, "#{e.message}\n#{children.join("\n")}\n#{log_tail}"
    end

    def ended?
      return true if @status

      pid, status = Process.wait2(@monitor, Process::WNOHANG)
      @status = status
      !pid.nil?
    end

    # Who is left of the server, the monitor included.
    def survivors = ProcessTable.session(@monitor)

    # The lines of the log that tell of something wrong. The application starts no processes: an unknown one is a child
    # that the monitor has lost.
    def complaints
      File.readlines(@log, chomp: true).grep(/ (ERROR|FATAL) -- |panicked|\[BUG\]|reaped unknown/)
    end

    def stop
      return unless @monitor

      signal(:QUIT) unless ended?
      Soak.wait_until("the end", seconds: STOP_WITHIN) { ended? }
    rescue Stuck => e
      warn "#{e.message}, killing"
    ensure # also after a second Ctrl-C
      survivors.each { |pid| kill(pid) } if @monitor
      Process.wait(@monitor) if @monitor && !ended?
    end

    def clean_up
      @keep ? warn("kept: #{@directory}") : FileUtils.rm_rf(@directory)
    end

    def log_tail(lines = 30)
      last = File.readlines(@log, chomp: true).last(lines)
      ["The end of the server's log:", *last.map { |line| "  #{line}" }].join("\n")
    end

    private

    def kill(pid)
      Process.kill(:KILL, pid)
    rescue Errno::ESRCH
      nil
    end

    # Below the ports that the kernel gives to clients. Within them, a client that asks after the server's end may be
    # given this very port, and would connect to itself.
    def free_port
      lowest = Integer(File.read("/proc/sys/net/ipv4/ip_local_port_range").split.first)
      100.times do
        port = rand(10_000...lowest)
        TCPServer.open("127.0.0.1", port).close
        return port
      rescue Errno::EADDRINUSE
        next
      end
      raise "no free port"
    end
  end
end
