# frozen_string_literal: true

require "rack"
require "socket"
require_relative "pitchfork_rs/version"
require_relative "pitchfork_rs/errors"
require_relative "pitchfork_rs/pitchfork_rs"
require_relative "pitchfork_rs/refork_condition"
require_relative "pitchfork_rs/configurator"
require_relative "pitchfork_rs/environment"
require_relative "pitchfork_rs/http_parser"
require_relative "pitchfork_rs/http_server"

# A Rack server that forks its workers from a warmed process, so that they share memory.
module PitchforkRs
  class << self
    # @return [Array<String>] where this process listens: `1.2.3.4:80`, `[::1]:80` or the path of a Unix socket
    def listener_names = HttpServer::LISTENERS.names

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
