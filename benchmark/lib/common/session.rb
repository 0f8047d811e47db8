# frozen_string_literal: true

require_relative "clock"
require_relative "guardian"

module Bench
  # A command in a session of its own, so that whoever is left of it can be found: children make process groups of their
  # own, and orphans lose their parent, but the session stays.
  class Session
    GONE = [Errno::ENOENT, Errno::ESRCH].freeze

    # The living processes of the session that this process leads.
    def self.members(leader)
      Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
        # The second field, the name in parentheses, may hold anything, parentheses included.
        state, _ppid, _group, session = File.binread("/proc/#{pid}/stat").rpartition(")").last.split
        session.to_i == leader && !%w[Z X].include?(state)
      rescue *GONE
        false
      end
    end

    attr_reader :pid, :status, :log

    # @param log [String] the file that gets its output
    # @param environment [Hash] names and values; nil takes a name away
    # @param input [IO, String] what it reads, or the path of that
    # @param directory [String] where it runs
    def initialize(*command, log:, environment: {}, input: File::NULL, directory: Dir.pwd)
      @log = log
      # Here, because it may be looked at before the child has made it.
      File.write(log, "")
      @pid = fork do
        Process.setsid
        exec(environment, *command, in: input, out: log, err: %i[child out], chdir: directory, close_others: true)
      end
      Guardian.watch(@pid)
    end

    def signal(name)
      Process.kill(name, pid)
    end

    # Whether the command itself has ended; others of its session may still be there.
    def ended?
      return true if @status

      ended, status = Process.wait2(pid, Process::WNOHANG)
      @status = status
      !ended.nil?
    end

    def members = self.class.members(pid)

    # Ends everybody. Whoever is being forked meanwhile is seen the next time.
    def kill
      Bench.wait_until("the end of all processes of session #{pid}") do
        members.each { |member| Guardian.kill(member) }.empty? & ended?
      end
    end

    def log_tail(lines = 30)
      last = File.readlines(log, chomp: true).last(lines)
      ["The end of the server's log:", *last.map { |line| "  #{line}" }].join("\n")
    end
  end
end
