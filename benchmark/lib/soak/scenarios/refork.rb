# frozen_string_literal: true

require_relative "../scenario"

module Soak
  # Reforks under constant load: nobody may notice, and the hundredth generation must be as good as the first.
  class Refork < Scenario
    NAME = "refork"
    SECONDS = 60
    # So many requests make a worker warm: every template has been used often, and the heap has found its size.
    WARM = 5_000
    # Pss is compared so long after a generation has settled: the longer workers serve, the less they share.
    AGE = 2
    PSS_SLACK = 0.05
    STACK_SLACK = 64
    SAMPLE_EVERY = 0.05
    # Beyond what a cold cache and a busy machine explain: nobody was awake to take the connection.
    FORGOTTEN = 5

    Mold = Struct.new(:generation, :memory, :stack)

    private

    def perform
      with_server do |server|
        before = descriptors(server)
        molds = [examine_mold(server)]
        under_load(server) { molds.concat(refork_for(seconds, server)) }
        compare_descriptors(before, descriptors(server))
        compare_molds(molds)
        expect_clean_end(server)
        expect_no_complaints(server)
      end
      expect_nobody_noticed(report.tally)
    end

    def expect_nobody_noticed(tally)
      slowest = tally.latencies.max
      report.expect("no request failed", tally.failed_count.zero?, tally.reasons)
      report.expect("no request was forgotten for #{FORGOTTEN} s", slowest < FORGOTTEN, "#{slowest.round(2)} s")
    end

    # The first mold that came from a worker, and the last.
    def refork_for(seconds, server)
      finish = Bench.now + seconds
      wait_until_warm(server)
      refork(server)
      server.wait_until_settled(beyond: 0)
      sleep AGE
      first = examine_mold(server)
      sent = 1 + refork_until(finish, server)
      [first, finish_reforks(server, sent)]
    end

    # The warmest worker is the one to be promoted.
    def wait_until_warm(server)
      server.wait_until("a warm worker", seconds: 60) { server.children.filter_map(&:requests).max.to_i >= WARM }
    end

    def refork_until(finish, server)
      sent = 0
      while Bench.now < finish
        refork(server)
        sent += 1
        sleep options.every
      end
      sent
    end

    def finish_reforks(server, sent)
      server.wait_until_settled
      steady, peak = watch_refork(server)
      sleep AGE
      last = examine_mold(server)
      report.figure("generations", "#{last.generation} reached, USR2 sent #{sent + 1} times")
      note_peak(steady, peak)
      # A USR2 during a refork counts once, however often it comes; two at most are under way.
      report.expect("the generations follow the signals", last.generation.between?([sent / 3, 2].max, sent + 1))
      report.expect("every worker is of the last generation", server.settled?)
      last
    end

    def note_peak(steady, peak)
      more = ((peak.to_f / steady) - 1) * 100
      report.figure("total Pss of the children",
                    "#{megabytes(steady)} steady, #{megabytes(peak)} at the peak of a refork (+#{more.round} %)")
    end

    def megabytes(kibibytes) = "#{(kibibytes / 1024.0).round(1)} MB"

    def refork(server)
      report.event("USR2")
      server.signal(:USR2)
    end

    # One more refork, sampled all the while. The total Pss of the children before, and the highest.
    def watch_refork(server)
      generation = server.generation
      steady = total_pss(server)
      refork(server)
      peak = steady
      server.wait_until("a refork beyond generation #{generation}", poll: SAMPLE_EVERY) do
        peak = [peak, total_pss(server)].max
        server.settled? && server.generation > generation
      end
      [steady, peak]
    end

    def total_pss(server)
      server.children.sum do |child|
        ProcessTable.memory(child.pid).pss
      rescue Errno::ENOENT, Errno::ESRCH
        0
      end
    end

    def examine_mold(server)
      mold = server.wait_until("one mold") { server.molds.then { |molds| molds.first if molds.size == 1 } }
      Mold.new(mold.generation, ProcessTable.memory(mold.pid), ProcessTable.stack(mold.pid))
    end

    # Memory against that of the first mold that came from a warm worker; the stack against the booted one's as well.
    def compare_molds(molds)
      molds.each { |mold| note_mold(mold) }
      _booted, first, last = molds
      growth = ((last.memory.pss.to_f / first.memory.pss) - 1).round(3)
      report.expect("the newest mold's Pss is within 5 % of the first promoted one's", growth <= PSS_SLACK,
                    "#{(growth * 100).round(1)} %")
      sizes, resident = molds.map(&:stack).transpose
      report.expect("the newest mold's stack is within 64 KiB of the first ones'",
                    [sizes, resident].all? { |stacks| stacks.last - stacks.min <= STACK_SLACK })
    end

    def note_mold(mold)
      memory = "Pss #{megabytes(mold.memory.pss)}, Rss #{megabytes(mold.memory.rss)}"
      report.figure("mold of generation #{mold.generation}", "#{memory}, stack #{mold.stack.join("/")} KiB")
    end

    # By role, while nobody is asking.
    def descriptors(server)
      server.wait_until_settled
      counts = server.children.to_h { |child| [child.role, ProcessTable.descriptors(child.pid)] }
      { "monitor" => ProcessTable.descriptors(server.monitor), **counts.sort.to_h }
    end

    def compare_descriptors(before, after)
      report.figure("descriptors", after.map { |role, count| "#{role} #{count}" }.join(", "))
      changed = before.reject { |role, count| after[role] == count }.map { |role, count| "#{role} had #{count}" }
      report.expect("every process has as many descriptors as at the start", changed.empty?, changed.join(", "))
    end
  end
end
