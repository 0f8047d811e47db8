# frozen_string_literal: true

module Bench
  # A process that outlives this one by a moment, whatever ends it, and ends the sessions that it left.
  module Guardian
    module_function

    # @param leader [Integer] the pid that leads a session
    def watch(leader)
      @writer ||= start
      @writer.puts(leader)
    end

    def start
      reader, writer = IO.pipe
      pid = fork do
        Process.setsid
        $PROGRAM_NAME = "benchmark guardian"
        writer.close
        reader.each_line.map { |line| Integer(line) }.each { |leader| end_session(leader) }
      ensure
        exit!
      end
      reader.close
      Process.detach(pid)
      writer.tap { |pipe| pipe.sync = true }
    end

    # Once more for whoever was being forked.
    def end_session(leader)
      until (members = Session.members(leader)).empty?
        members.each { |pid| kill(pid) }
        sleep 0.01
      end
    end

    def kill(pid)
      Process.kill(:KILL, pid)
    rescue Errno::ESRCH
      nil
    end
  end
end
