# frozen_string_literal: true

require "rack"
require "socket"
require_relative "pitchfork_rs/version"
require_relative "pitchfork_rs/errors"
require_relative "pitchfork_rs/pitchfork_rs"
require_relative "pitchfork_rs/refork_condition"
require_relative "pitchfork_rs/configurator"
require_relative "pitchfork_rs/environment"
require_relative "pitchfork_rs/fork_lock"
require_relative "pitchfork_rs/hijack"
require_relative "pitchfork_rs/http_parser"
require_relative "pitchfork_rs/http_server"
require_relative "pitchfork_rs/timeout_info"
require_relative "pitchfork_rs/uncopied"

# A Rack server that forks its workers from a warmed process, so that they share memory.
module PitchforkRs
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

    # Logs an exception: `PREFIX: MESSAGE (CLASS)`, then its backtrace, a line each.
    #
    # @param logger [#error]
    # @param prefix [String] what failed
    # @param exception [Exception]
    # @return [void]
    def log_error(logger, prefix, exception)
      message = exception.message
      message = message.dump if message.match?(/[[:cntrl:]]/)
      logger.error("#{prefix}: #{message} (#{exception.class})")
      exception.backtrace&.each { |line| logger.error(line) }
    end
  end
end

# Configuration files and applications name it so, unless the gem of that name is there as well.
Pitchfork = PitchforkRs unless defined?(Pitchfork)
