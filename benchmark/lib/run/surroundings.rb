# frozen_string_literal: true

require "etc"
require "time"

module Run
  # What figures depend on besides the servers.
  module Surroundings
    # Beyond this load for each processor the machine has something else to do.
    BUSY = 0.5

    module_function

    def to_h
      { at: Time.now.utc.iso8601, ruby: RUBY_DESCRIPTION, kernel: Etc.uname[:release], processors: Etc.nprocessors,
        processor: File.read("/proc/cpuinfo")[/^model name\s*: (.*)/, 1] || Etc.uname[:machine], load: load }
    end

    # The load average of the last minute.
    def load = Float(File.read("/proc/loadavg").split.first)

    def busy? = load > BUSY * Etc.nprocessors
  end
end
