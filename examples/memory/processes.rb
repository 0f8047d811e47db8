# frozen_string_literal: true

# What /proc tells about processes and their memory.
module Processes
  # `pss` counts each shared page by the share of one process, so that a sum over processes counts it once;
  # `private_dirty` is what a process has written for itself alone. Both in MB.
  Memory = Struct.new(:pss, :private_dirty) do
    def self.parse(smaps_rollup)
      new(*%w[Pss Private_Dirty].map { |field| smaps_rollup[/^#{field}:\s+(\d+) kB/, 1].to_i / 1024.0 })
    end

    def self.of(pid)
      parse(File.read("/proc/#{pid}/smaps_rollup"))
    end
  end

  # A child of the monitor, as its process title describes it. A child that has just been forked still carries its
  # parent's title.
  Child = Struct.new(:pid, :role, :generation) do
    def mold?
      role == "mold"
    end

    def worker?
      role.start_with?("worker")
    end
  end

  TITLE = /\(gen:(?<generation>\d+)\) (?<role>mold|service|worker\[\d+\])/

  module_function

  def children_of(parent)
    pids = Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i)
    pids.filter_map { |pid| describe(pid) if alive_child?(pid, parent) }.sort_by { |child| [child.role, child.pid] }
  end

  def alive_child?(pid, parent)
    # The second field, the name in parentheses, may hold anything, parentheses included.
    state, ppid = File.binread("/proc/#{pid}/stat").rpartition(")").last.split.first(2)
    ppid.to_i == parent && state != "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  def describe(pid)
    title = File.binread("/proc/#{pid}/cmdline").match(TITLE)
    title ? Child.new(pid, title[:role], title[:generation].to_i) : Child.new(pid, "unknown", nil)
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end
end
