# frozen_string_literal: true

module PitchforkRs
  # What a configuration comes to, as text for people: each setting with its value, and where it was made.
  # @api private
  class ConfigurationReport
    # @param config [Configurator]
    # @param app [String] the application's path
    def initialize(config, app)
      @config = config
      @app = app
    end

    # @return [String] lines of text
    def to_s
      rows = [*listeners, *settings]
      widths = [0, 1].map { |column| rows.map { |row| row[column].length }.max }
      lines = rows.map do |name, value, place|
        "#{name.ljust(widths[0])}  #{value.ljust([widths[1], 60].min)}  # #{place}"
      end
      [heading, "", *lines, ""].join("\n")
    end

    private

    def heading
      file = @config.config_file
      "The configuration is fine: #{file || "no file"}, RACK_ENV #{ENV.fetch("RACK_ENV", "not set")}, " \
        "application #{@app} (not loaded)"
    end

    def listeners
      @config.listeners.map do |address, options|
        ["listen", [address.inspect, *options.compact.map { |name, value| "#{name}: #{value.inspect}" }].join(", "),
         @config.place_of_listener(address)]
      end
    end

    def settings
      @config.effective_settings.map do |name, value, place|
        built_in = place == "default" && value.is_a?(Proc)
        [name.to_s, built_in ? "logs a line" : describe(value), place]
      end
    end

    def describe(value)
      case value
      when nil then "none"
      when Proc, Method then "#{value.class} at #{value.source_location&.join(":") || "no line of Ruby"}"
      when Logger then "#{value.class}#{" to #{log_target(value)}" if log_target(value)}"
      else value.inspect
      end
    end

    def log_target(logger)
      device = logger.instance_variable_get(:@logdev)
      return unless device.respond_to?(:dev)

      { $stderr => "standard error", $stdout => "standard output" }[device.dev] || device.filename ||
        (device.dev.path if device.dev.is_a?(File))
    end
  end
end
