# frozen_string_literal: true

# Configurations and applications of Pitchfork's users find these loaded, and many name `Etc` or `FileUtils` without
# asking for them.
require "etc"
require "io/wait"
require "stringio"
require "tempfile"

require "rack"
require "socket"
require_relative "pitchfork_rs/version"
require_relative "pitchfork_rs/errors"
require_relative "pitchfork_rs/extension"
PitchforkRs::Extension.load
require_relative "pitchfork_rs/refork_condition"
require_relative "pitchfork_rs/configurator"
require_relative "pitchfork_rs/environment"
require_relative "pitchfork_rs/fork_lock"
require_relative "pitchfork_rs/hijack"
require_relative "pitchfork_rs/http_parser"
require_relative "pitchfork_rs/log"
require_relative "pitchfork_rs/log_files"
require_relative "pitchfork_rs/out_of_band_gc"
require_relative "pitchfork_rs/pid_file"
require_relative "pitchfork_rs/http_server"
require_relative "pitchfork_rs/info"
require_relative "pitchfork_rs/timeout_info"
require_relative "pitchfork_rs/uncopied"

# A Rack server that forks its workers from a warmed process, so that they share memory.
module PitchforkRs
  # Whether this system can replace the mold by a warm worker. Linux always can.
  REFORKING_AVAILABLE = true

  class << self
    # Runs the block, and keeps this process from being forked meanwhile: for code on other threads that takes locks
    # inside native libraries, such as resolving a host's name, whose copies in a child nobody would release.
    #
    # A fork that has to wait is logged after a second, and is given up after half of `spawn_timeout`, to be tried again
    # later.
    #
    # @example
    #   Thread.new { loop { Pitchfork.prevent_fork { heartbeat }; sleep 10 } }
    # @return [Object] what the block returns
    def prevent_fork(&)
      ForkLock.hold(&)
    end

    # @param int [Boolean] whether whole seconds are wanted
    # @return [Float, Integer] seconds of a clock that is never set
    def time_now(int = false) # rubocop:disable Style/OptionalBooleanParameter
      Process.clock_gettime(Process::CLOCK_MONOTONIC, int ? :second : :float_second)
    end

    # @return [Array<String>] where this process listens: `1.2.3.4:80`, `[::1]:80` or the path of a Unix socket
    def listener_names = HttpServer::LISTENERS.names

    # Logs an exception: `PREFIX: MESSAGE (CLASS)`, then its backtrace, a line each, or all of it as one object where
    # the logger writes JSON.
    #
    # @param logger [#error]
    # @param prefix [String] what failed
    # @param exception [Exception]
    # @return [void]
    def log_error(logger, prefix, exception)
      Log.error(logger, prefix, exception)
    end
  end
end

# Configuration files and applications name it so, unless the gem of that name is there as well.
Pitchfork = PitchforkRs unless defined?(Pitchfork)
