# frozen_string_literal: true

require_relative "log/error_report"
require_relative "log/json_formatter"

module PitchforkRs
  # What the server's log lines have in common. The lines themselves are plain text wherever they come from; a formatter
  # makes other things of them.
  # @api private
  module Log
    class << self
      # @return [Worker, nil] the mold or worker that this process is; nil in the monitor
      attr_accessor :process

      # @see PitchforkRs.log_error
      def error(logger, prefix, exception)
        report = ErrorReport.new(prefix, exception)
        return logger.error(report) if logger.respond_to?(:formatter) && logger.formatter.is_a?(JsonFormatter)

        logger.error(report.headline)
        report.backtrace.each { |line| logger.error(line) }
      end
    end
  end
end
