# frozen_string_literal: true

require_relative "compatibility"

module PitchforkRs
  # What is the same in the Rack environment of each request.
  # @api private
  module Environment
    class << self
      # @param logger [Logger] for `rack.logger`
      # @return [Hash{String => Object}] a new environment to add a request to
      def template(logger)
        template = {
          "SCRIPT_NAME" => "",
          "SERVER_SOFTWARE" => "pitchfork-rs #{VERSION}",
          "rack.url_scheme" => "http",
          "rack.errors" => $stderr,
          "rack.logger" => logger,
          "rack.multithread" => false,
          "rack.multiprocess" => true,
          "rack.run_once" => false,
          "rack.hijack?" => true
        }
        template["rack.version"] = [1, 3].freeze if Compatibility.rack_version_in_environment?
        template
      end
    end
  end
end
