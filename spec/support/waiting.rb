# frozen_string_literal: true

# Waiting for a condition, never for a time.
module Waiting
  # How long anything that must happen may take, on a machine that is busy with other things.
  PATIENCE = 30
  # A condition did not come about.
  Late = Class.new(StandardError)

  module_function

  # Calls the block until it returns something true, and returns that.
  def wait_until(what = "the condition", seconds: PATIENCE)
    deadline = now + seconds
    until (result = yield)
      raise Late, "#{what} did not come about within #{seconds} seconds" if now > deadline

      sleep 0.02
    end
    result
  end

  # Whether nobody is left of a process group, not even for whoever has to reap it.
  def group_ended?(leader)
    Process.kill(0, -leader) && false
  rescue Errno::ESRCH
    true
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
