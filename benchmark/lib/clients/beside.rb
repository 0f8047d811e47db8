# frozen_string_literal: true

require_relative "harassment"
require_relative "scenario"

module Clients
  # A normal load alone, and then beside many clients that are slow or idle.
  class Beside < Scenario
    # A worker gives away within a second what it holds.
    REST = 2.0
    # How many times its value alone the 99th percentile may be.
    MOST = 2.0
    # Nothing of what was done has an effect on a request that began later.
    EFFECT = 0.2

    private

    def perform(server)
      @alone = load(server) { sleep options.seconds / 3 }
      server.wait_until("a reactor") { server.reactor }
      sleep REST
      before = descriptors(server)
      workers = server.workers.map(&:pid)
      beside(server)
      @replaced = (workers - server.workers.map(&:pid)).size
      compare_descriptors(server, before) unless options.drain?
      figures
      expect_clean_end(server)
      expectations
      expect_no_complaints(server)
    end

    def beside(server)
      crowd = Crowd.new(server.address, options.counts)
      gather(server, crowd)
      note_reactor(server, "at the beginning")
      @harassment = Harassment.new(server, options, report)
      report.began = Bench.now
      @beside = load(server, until_refused: options.drain?) { @harassment.run(options.seconds) }
      note_reactor(server, "at the end") unless options.drain?
      @open, @ends = crowd.leave
    ensure
      crowd&.close
    end

    # Until all that are idle, or read, wait in the reactor.
    def gather(server, crowd)
      began = Bench.now
      crowd.wait_until_settled
      held = nil
      Bench.wait_until("the reactor has all slow and idle clients", seconds: 20, poll: 0.2) do
        held = connections(server)
        held[:idle] >= options.counts[:idle] && held[:writing] >= options.counts[:readers]
      end
      record[:gathered_in_s] = Bench.now - began
    rescue Bench::Stuck => e
      report.expect(e.message, false, held&.inspect || server.log_tail)
    end

    def note_reactor(server, moment)
      pid = server.reactor or return
      memory = Soak::ProcessTable.memory(pid)
      counts = connections(server)
      megabytes = [memory.pss, memory.private_dirty].map { |kib| (kib / 1024.0).round(1) }
      told = counts.map { |count| count.join(" ") }.join(", ")
      note(:"reactor_#{moment.tr(" ", "_")}", "reactor #{moment}",
           "Pss #{megabytes.first} MB, private dirty #{megabytes.last} MB; #{told}",
           pss_kib: memory.pss, private_dirty_kib: memory.private_dirty, descriptors: descriptor_count(pid), **counts)
    end

    def descriptor_count(pid)
      Soak::ProcessTable.descriptors(pid)
    rescue *Soak::ProcessTable::GONE
      0
    end

    # By role, while nobody is asking.
    def descriptors(server)
      children = server.children.to_h { |child| [child.role, descriptor_count(child.pid)] }
      { "monitor" => descriptor_count(server.monitor), **children.sort.to_h }
    end

    def compare_descriptors(server, before)
      server.wait_until_settled
      after = nil
      server.wait_until("as many descriptors as before", seconds: 10, poll: 0.2) do
        after = descriptors(server)
        after == before
      end
    rescue Bench::Stuck
      nil # told below
    ensure
      text = after.to_h.map { |role, count| "#{role} #{count}" }.join(", ")
      note(:descriptors, "descriptors", text, { before:, after: })
      changed = before.reject { |role, count| after[role] == count }.map { |role, count| "#{role} had #{count}" }
      report.expect("every process has as many descriptors as before", changed.empty?, changed.join(", "))
    end

    def figures
      report.tally = @beside
      note_tally(:alone, "alone", @alone)
      note_tally(:beside, "beside the others", @beside)
      note(:p99_ratio, "p99 beside ÷ alone", format("%.2f", ratio), ratio)
      note(:workers_replaced, "workers replaced", @replaced, @replaced)
      options.counts.each_key { |kind| note_kind(kind) }
      note_harassment
    end

    def ratio = @beside.latencies.quantile(0.99) / @alone.latencies.quantile(0.99)

    def note_kind(kind)
      outcomes = outcomes_of(kind)
      text = outcomes.map { |outcome, count| "#{count} #{outcome}" }
      note(:"#{kind}_outcomes", kind.to_s, [*text, "#{@open.fetch(kind, 0)} not at their end"].join(", "),
           { **outcomes, not_at_their_end: @open.fetch(kind, 0) })
    end

    def outcomes_of(kind) = @ends.select { |one| one.kind == kind }.map(&:outcome).tally

    def note_harassment
      note(:kills, "workers killed", @harassment.kills.size, @harassment.kills.size) if options.kill_workers?
      @harassment.reactor_back&.then { |time| note(:reactor_back_s, "reactor back", "after #{ms(time)}", time) }
      @harassment.quit_took&.then { |time| note(:quit_took_s, "exit", "after #{ms(time)}", time) }
    end

    def ms(seconds) = "#{(seconds * 1000).round} ms"

    def expectations
      expect_requests
      expect_no_loss
      back = @harassment.reactor_back
      report.expect("the reactor is back within 1 s", back < 1, ms(back)) if back
      report.expect("no worker was replaced", @replaced.zero?, @replaced) if
        [options.refork, options.kill_workers?, options.drain?].none?
    end

    def expect_requests
      innocent = @beside.failures.reject { |failure| guilty?(failure) }
      innocent.reject! { |failure| failure.reason == :refused } if options.drain?
      report.expect("no request of the load failed, but those in hand at a kill", innocent.empty?, innocent.first&.to_s)
      return if options.drain? || options.kill_workers?

      report.expect("p99 is at most #{MOST} times its value alone", ratio <= MOST, ratio.round(2))
    end

    def guilty?(failure)
      @harassment.kills.any? { |at| at.between?(failure.at - failure.took - EFFECT, failure.at) }
    end

    # What each kind of client may see besides its answers.
    def expect_no_loss
      options.counts.each_key do |kind|
        lost = @ends.select { |one| one.kind == kind }.reject { |one| allowed?(one) }
        report.expect("none of the #{kind} was lost", lost.empty?, lost.map(&:outcome).tally.inspect)
      end
    end

    def allowed?(one)
      return true if one.outcome == :answered
      # Its connections end with it.
      return true if @harassment.reactor_killed_at&.<(one.at)
      # They have a moment with the worker before they are given away.
      return one.kind != :idle if options.kill_workers?

      options.drain? && one.at > @harassment.quit_at &&
        (one.kind == :idle ? one.outcome == :closed : %i[refused timeout].include?(one.outcome) || one.kind == :readers)
    end
  end
end
