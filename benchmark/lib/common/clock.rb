# frozen_string_literal: true

# What the tools here have in common.
module Bench
  # What was waited for did not happen.
  class Stuck < StandardError; end

  module_function

  # One clock for all processes of this machine, so that events here and failures there can be compared.
  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Repeats the block until it returns something true, and returns that.
  def wait_until(what, seconds: 30, poll: 0.01)
    deadline = now + seconds
    loop do
      result = yield and return result

      raise Stuck, "not reached within #{seconds} s: #{what}" if now > deadline

      sleep poll
    end
  end
end
