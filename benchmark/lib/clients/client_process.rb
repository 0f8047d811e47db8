# frozen_string_literal: true

require "io/wait"
require_relative "../common/clock"

module Clients
  # A process of clients beside this one, which tells what it has found. It ends when it is told to, and when nobody is
  # left to tell it.
  class ClientProcess
    # Yields self in the new process; what that tells is heard in this one.
    def initialize
      reader, @writer = IO.pipe(binmode: true)
      @stopped = false
      parent = Process.pid
      @pid = fork do
        reader.close
        @parent = parent
        # A terminal sends its signals to the parent as well, which then cleans up.
        %w[TERM INT HUP].each { |signal| trap(signal) { @stopped = true } }
        yield self
      ensure
        exit!
      end
      @writer.close
      @reader = reader
    end

    # In the new process: whether it has to come to its end.
    def stopped? = @stopped || Process.ppid != @parent

    # In the new process.
    def tell(object)
      @writer.write(Marshal.dump(object))
    end

    # The next thing that was told. Raises Bench::Stuck if nothing is.
    def hear(what, seconds: 30)
      raise Bench::Stuck, "not told within #{seconds} s: #{what}" unless @reader.wait_readable(seconds)

      Marshal.load(@reader) # rubocop:disable Security/MarshalLoad -- from our own child
    rescue EOFError
      raise Bench::Stuck, "a process of the load died before it told: #{what}"
    end

    # Tells it to come to its end.
    def stop
      Process.kill(:TERM, @pid) if @pid
    end

    # Ends it in any case.
    def close
      return unless @pid

      Process.kill(:KILL, @pid)
      Process.wait(@pid)
      @pid = nil
      @reader.close
    end
  end
end
