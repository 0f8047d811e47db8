# frozen_string_literal: true

module PitchforkRs
  # What is the same in the Rack environment of each request.
  # @api private
  module Environment
    # From which release on `rack.version` is gone, and `OPTIONS *` has a path.
    RACK_WITHOUT_VERSION = Gem::Version.new("3.0")
    RACK_WITH_ASTERISK = Gem::Version.new("3.2")
    private_constant :RACK_WITHOUT_VERSION, :RACK_WITH_ASTERISK

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
        template["rack.version"] = [1, 3].freeze if rack_release < RACK_WITHOUT_VERSION
        template
      end

      # @return [Boolean] whether `OPTIONS *` has `*` as its `PATH_INFO`, as Rack 3.2 has it, or none
      def asterisk_in_path_info?
        rack_release >= RACK_WITH_ASTERISK
      end

      private

      def rack_release
        Gem::Version.new(Rack.release)
      end
    end
  end
end
