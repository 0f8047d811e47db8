# frozen_string_literal: true

require_relative "../common/clock"

module Clients
  # What is done to the server while its clients are there.
  class Harassment
    BETWEEN_KILLS = 1.0
    POLL = 0.005

    # When workers were killed.
    attr_reader :kills
    # How long there was no reactor after it was killed, in seconds.
    attr_reader :reactor_back
    # When the reactor was killed.
    attr_reader :reactor_killed_at
    # When the server was told to stop, and how many seconds that took.
    attr_reader :quit_at, :quit_took

    # How long a stop may take.
    STOP_WITHIN = 60

    def initialize(server, options, report)
      @server = server
      @options = options
      @report = report
      @kills = []
    end

    # For so many seconds.
    def run(seconds)
      began = Bench.now
      due = { refork: began + @options.refork.to_f, worker: began + BETWEEN_KILLS, middle: began + (seconds / 2) }
      while Bench.now < began + seconds
        refork(due) if @options.refork && Bench.now >= due[:refork]
        kill_worker(due) if @options.kill_workers? && Bench.now >= due[:worker]
        strike(due) if Bench.now >= due[:middle]
        return if @quit_at

        sleep POLL
      end
    end

    private

    def refork(due)
      due[:refork] += @options.refork
      @report.event("USR2")
      @server.signal(:USR2)
    end

    def kill_worker(due)
      due[:worker] += BETWEEN_KILLS
      victim = @server.workers.select(&:ready?).sample or return
      @report.event("killed #{victim}")
      Process.kill(:KILL, victim.pid)
      @kills << Bench.now
    rescue Errno::ESRCH
      nil # it was faster
    end

    def strike(due)
      due[:middle] = Float::INFINITY
      kill_reactor if @options.kill_reactor?
      quit if @options.drain?
    end

    def kill_reactor
      victim = @server.reactor or raise Bench::Stuck, "there is no reactor to be killed"
      @report.event("killed the reactor (pid #{victim})")
      @reactor_killed_at = Bench.now
      Process.kill(:KILL, victim)
      @server.wait_until("another reactor") { @server.reactor&.then { |pid| pid != victim } }
      @reactor_back = Bench.now - @reactor_killed_at
    end

    def quit
      @report.event("QUIT")
      @quit_at = Bench.now
      @server.signal(:QUIT)
      Bench.wait_until("the end", seconds: STOP_WITHIN) { @server.ended? }
      @quit_took = Bench.now - @quit_at
    end
  end
end
