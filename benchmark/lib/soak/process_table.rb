# frozen_string_literal: true

module Soak
  # What /proc tells about processes.
  module ProcessTable
    # A child of the monitor, as its title describes it. One that has just been forked still carries its parent's title.
    Child = Struct.new(:pid, :kind, :nr, :generation, :status) do
      def mold? = kind == "mold"
      def worker? = kind == "worker"
      def ready? = mold? ? status == "ready" : status.match?(/\Arequests: \d+, (waiting|processing)/)
      def requests = status && status[/\Arequests: (\d+)/, 1]&.to_i
      def role = worker? ? "worker[#{nr}]" : kind
      def to_s = "#{role} of generation #{generation || "?"} (pid #{pid}, #{status})"
    end

    # In KiB.
    Memory = Struct.new(:pss, :rss, :private_dirty)

    TITLE = /\(gen:(?<generation>\d+)\) (?<kind>mold|service|worker)(?:\[(?<nr>\d+)\])?(?: - (?<status>[^\0]*))?/
    GONE = [Errno::ENOENT, Errno::ESRCH].freeze

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

      title = command.match(TITLE) or return Child.new(pid, "unknown", nil, nil, command.tr("\0", " ").strip)
      Child.new(pid, title[:kind], title[:nr]&.to_i, title[:generation].to_i, title[:status].to_s.strip)
    rescue *GONE
      nil
    end

    # The living processes of a session. Children make process groups of their own, and orphans lose their parent, but
    # the session stays.
    def session(leader)
      Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
        # The second field, the name in parentheses, may hold anything, parentheses included.
        state, _ppid, _group, session = File.binread("/proc/#{pid}/stat").rpartition(")").last.split
        session.to_i == leader && !%w[Z X].include?(state)
      rescue *GONE
        false
      end
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
