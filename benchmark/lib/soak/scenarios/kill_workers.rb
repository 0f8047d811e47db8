# frozen_string_literal: true

require_relative "../scenario"

module Soak
  # Something happens to the server again and again, and the time is taken until it is complete again.
  class Killing < Scenario
    SECONDS = 30
    POLL = 0.01
    # A server that is not complete again by then will not be.
    PATIENCE = 20

    private

    def perform
      @killed_at = []
      @recoveries = []
      with_server do |server|
        under_load(server) { harass(server) }
        figures
        expect_clean_end(server)
      end
      expectations
    end

    def harass(server)
      finish = Bench.now + seconds
      due = schedule(Bench.now)
      hurt_at = nil
      while Bench.now < finish || hurt_at
        hurt_at = watch(server, hurt_at)
        hurt_at = strike(server, due, hurt_at) if Bench.now < finish
        sleep POLL
      end
      server.wait_until("complete at the end") { server.complete? }
    end

    # Notes when the server is complete again.
    def watch(server, hurt_at)
      return unless hurt_at

      if server.complete?
        @recoveries << (Bench.now - hurt_at)
        nil
      elsif server.ended? || Bench.now - hurt_at > PATIENCE
        raise Bench::Stuck, "not complete again\n#{server.children.join("\n")}\n#{server.log_tail}"
      else
        hurt_at
      end
    end

    # A request in hand is lost with its worker. Any other failure has another cause.
    def innocent_failures
      report.tally.failures.select do |failure|
        @killed_at.none? { |at| at.between?(failure.at - failure.took, failure.at) }
      end
    end

    def kill(server, victim)
      return unless victim

      report.event("killed #{victim}")
      Process.kill(:KILL, victim.pid)
      @killed_at << Bench.now
      # It is still in the table until the monitor reaps it, but not complete without it.
      server.wait_until("the death of #{victim}") { server.children.none? { |child| child.pid == victim.pid } }
      true
    rescue Errno::ESRCH
      false # it was faster
    end

    def figures
      times = @recoveries.sort
      report.figure("kills", @killed_at.size)
      return if times.empty?

      p50, max = [times[times.size / 2], times.last].map { |time| (time * 1000).round }
      report.figure("complete again", "#{times.size} times, p50 #{p50} ms, max #{max} ms")
    end

    def expectations
      failed = report.tally.failed_count
      report.expect("somebody was killed", @killed_at.any?)
      report.expect("each kill costs one request at most", failed <= @killed_at.size,
                    "#{failed} failed, #{@killed_at.size} kills")
      innocent = innocent_failures
      report.expect("only requests that were in hand at a kill failed", innocent.empty?, innocent.first&.to_s)
      report.expect("always complete again", @recoveries.any?)
    end
  end

  # A random worker dies every second.
  class KillWorkers < Killing
    NAME = "kill-workers"
    PAUSE = 1.0

    private

    def schedule(now)
      { kill: now + PAUSE }
    end

    # From when on the server is not complete, if it is not.
    def strike(server, due, hurt_at)
      return hurt_at if hurt_at || Bench.now < due[:kill]

      due[:kill] += PAUSE
      at = Bench.now
      kill(server, server.children.select(&:worker?).sample) ? at : hurt_at
    end
  end
end
