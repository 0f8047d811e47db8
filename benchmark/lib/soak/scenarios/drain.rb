# frozen_string_literal: true

require_relative "../scenario"

module Soak
  # QUIT in the middle of a rush. Who was connected gets the answer, who was not is refused, and there is no third.
  class Drain < Scenario
    NAME = "drain"
    CLIENTS = 32
    RUSH = (0.5..1.5)
    REFORKING = (0.0..0.8)
    # A SYN that is dropped is sent again after 1 s (then after 3 and 7), and refused by then.
    LATE_REFUSAL = 0.5
    # Every fourth client asks so long after it has connected. Its connection may wait in a queue, or with a worker.
    LATE = 0.005

    private

    def perform
      total = Tally.new
      options.times.times do |run|
        with_server do |server|
          tally = drain(server, refork: run.odd?)
          note(run, tally)
          expect_clean_end(server)
          total.merge(tally, after: true)
        end
      end
      report.tally = total
    end

    # Every second time a refork is under way.
    def drain(server, refork:)
      report.began = Bench.now
      Load.new(server.address, clients: options.clients || CLIENTS, until_refused: true, late: LATE).run do |load|
        sleep rand(RUSH)
        hurry(server) if refork
        @took = quit(server)
        load.finish
      end
    end

    def hurry(server)
      report.event("USR2")
      server.signal(:USR2)
      sleep rand(REFORKING)
    end

    # The time it takes.
    def quit(server)
      began = Bench.now
      report.event("QUIT")
      server.signal(:QUIT)
      Bench.wait_until("the end", seconds: 60, poll: 0.002) { server.ended? }
      Bench.now - began
    end

    def note(run, tally)
      late = tally.failures.count { |failure| failure.reason == :refused && failure.took > LATE_REFUSAL }
      report.figure("run #{run + 1}", "#{tally.ok} served, #{tally.refused} refused (#{late} of them late), " \
                                      "#{tally.lost} lost, #{tally.unanswered} neither; " \
                                      "exit after #{(@took * 1000).round} ms")
      report.expect("run #{run + 1}: nobody lost", tally.lost.zero? && tally.unanswered.zero?, tally.reasons)
    end
  end
end
