# frozen_string_literal: true

require_relative "../errors"

module PitchforkRs
  class Configurator
    # What the environment says where nothing else does. An empty variable counts as one that is not set.
    # @api private
    module EnvironmentSettings
      module_function

      # @return [Integer, nil] the number of workers in `WEB_CONCURRENCY`
      # @raise [ConfigurationError] if it is no Integer of at least 1
      def worker_processes
        integer("WEB_CONCURRENCY", 1..)
      end

      # @return [Integer, nil] the TCP port in `PORT`
      # @raise [ConfigurationError] if it is no Integer from 0 to 65535
      def port
        integer("PORT", 0..65_535)
      end

      def integer(name, range)
        text = ENV.fetch(name, "").strip
        return if text.empty?

        value = Integer(text, 10) if text.match?(/\A\d+\z/)
        return value if value && range.cover?(value)

        limits = range.end ? "from #{range.begin} to #{range.end}" : "of at least #{range.begin}"
        raise ConfigurationError, "environment: #{name}: got #{text[0, 80].inspect}, wanted an Integer #{limits}"
      end
      private_class_method :integer
    end
  end
end
