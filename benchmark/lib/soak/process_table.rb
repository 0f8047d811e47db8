# frozen_string_literal: true

require_relative "../common/session"

module Soak
  # What /proc tells about processes.
  module ProcessTable
    # A child of the monitor, as its title describes it. One that has just been forked still carries its parent's title.
    Child = Struct.new(:pid, :kind, :nr, :generation, :status) do
      def mold? = kind == "mold"
      def worker? = kind == "worker"
      def reactor? = kind == "reactor"
      def ready? = mold? ? status == "ready" : status.match?(/\Arequests: \d+, (waiting|processing)/)
      def requests = status && status[/\Arequests: (\d+)/, 1]&.to_i
      def role = worker? ? "worker[#{nr}]" : kind
      def to_s = "#{role} of generation #{generation || "?"} (pid #{pid}, #{status})"
    end

    # In KiB.
    Memory = Struct.new(:pss, :rss, :private_dirty)

    REACTOR = "pitchfork-rs reactor"
    TITLE = /\(gen:(?<generation>\d+)\) (?<kind>mold|service|worker)(?:\[(?<nr>\d+)\])?(?: - (?<status>[^\0]*))?/
    GONE = Bench::Session::GONE

    module_function

    # The kernel keeps the list by the thread that a child was forked by, or given to.
    def children_of(monitor)
      pids = Dir.glob("/proc/#{monitor}/task/*/children").flat_map { |path| File.read(path).split }
      pids.filter_map { |pid| describe(Integer(pid)) }
    rescue *GONE
      []
    end

    # nil for a zombie, whose title is empty, and for whoever is gone.
    def describe(pid)
      command = File.binread("/proc/#{pid}/cmdline")
      return if command.empty?

      return Child.new(pid, "reactor", nil, nil, "") if command.start_with?(REACTOR)

      title = command.match(TITLE) or return Child.new(pid, "unknown", nil, nil, command.tr("\0", " ").strip)
      Child.new(pid, title[:kind], title[:nr]&.to_i, title[:generation].to_i, title[:status].to_s.strip)
    rescue *GONE
      nil
    end

    def memory(pid)
      rollup = File.read("/proc/#{pid}/smaps_rollup")
      Memory.new(*%w[Pss Rss Private_Dirty].map { |field| Integer(rollup[/^#{field}:\s+(\d+) kB/, 1] || 0) })
    end

    # Size and resident part of the main thread's stack, in KiB.
    def stack(pid)
      mapping = File.read("/proc/#{pid}/smaps")[/ \[stack\]\n.*?(?=^VmFlags)/m]
      %w[Size Rss].map { |field| Integer(mapping[/^#{field}:\s+(\d+) kB/, 1]) }
    end

    def descriptors(pid)
      Dir.children("/proc/#{pid}/fd").size
    end
  end
end
