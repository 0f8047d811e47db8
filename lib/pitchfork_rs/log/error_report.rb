# frozen_string_literal: true

module PitchforkRs
  module Log
    # An exception that is to be logged, and what failed by it.
    # @api private
    ErrorReport = Struct.new(:prefix, :exception) do
      # @return [String] one line, whatever the exception's message holds
      def headline
        "#{prefix}: #{one_line(exception.message.to_s)} (#{exception.class})"
      end

      # @return [Array<String>]
      def backtrace
        exception.backtrace.to_a
      end

      private

      def one_line(message)
        message.valid_encoding? && !message.match?(/[[:cntrl:]]/) ? message : message.dump
      end
    end
  end
end
