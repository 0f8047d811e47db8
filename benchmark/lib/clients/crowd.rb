# frozen_string_literal: true

require_relative "../common/clock"
require_relative "client_process"
require_relative "members"

module Clients
  # All the slow and idle clients, in one process beside this one. Each has its turn once a second; a wheel says whose
  # it is, so that nobody else has to be looked at.
  class Crowd
    SLOTS = 50
    # What this process has open besides.
    RESERVE = 100

    # The hard limit of descriptors does not allow so many.
    class TooMany < StandardError; end

    # Raises TooMany.
    def self.check(size)
      hard = Process.getrlimit(:NOFILE).last
      return if size + RESERVE <= hard

      raise TooMany, "#{size} connections want #{size + RESERVE} descriptors, and the hard limit is #{hard}: " \
                     "ask for fewer, or raise it (ulimit -Hn)"
    end

    # @param counts [Hash{Symbol => Integer}] how many of each kind
    def initialize(address, counts)
      @address = address
      @counts = counts
      @process = ClientProcess.new { |there| run(there) }
    end

    # Waits until every client has come as far as it is meant to.
    def wait_until_settled(seconds: 60)
      @process.hear("all slow and idle clients are connected", seconds:)
    end

    # Has them leave, and counts: by kind, how often each outcome has come about, and how many were still connected.
    # @return [Hash{Symbol => Hash{Symbol => Integer}}, Array<Member::End>]
    def leave
      @process.stop
      @process.hear("what became of the slow and idle clients")
    end

    def close = @process.close

    private

    def run(there)
      raise_limit
      @ends = []
      members = make
      slots = Array.new(SLOTS) { [] }
      members.each_with_index { |member, index| slots[index % SLOTS] << member }
      turn_wheel(there, members, slots)
      members.each(&:look_ahead)
      open = members.group_by { |member| member.class::KIND }.transform_values { |kind| kind.count(&:open?) }
      members.each(&:close)
      there.tell([open, @ends])
    end

    def raise_limit
      soft, hard = Process.getrlimit(:NOFILE)
      Process.setrlimit(:NOFILE, hard, hard) if soft < hard
    end

    def make
      [Sender, Reader, Idler].flat_map do |kind|
        Array.new(@counts.fetch(kind::KIND)) { |number| kind.new(@address, number, @ends) }
      end.shuffle(random: Random.new(1))
    end

    def turn_wheel(there, members, slots)
      began = Bench.now
      told = false
      tick = 0
      until there.stopped?
        slots[tick % SLOTS].each { |member| member.turn(tick / SLOTS) }
        told ||= there.tell(:settled) if (tick % SLOTS).zero? && members.all?(&:settled?)
        tick += 1
        left = began + tick.fdiv(SLOTS) - Bench.now
        left.positive? ? sleep(left) : began -= left
      end
    end
  end
end
