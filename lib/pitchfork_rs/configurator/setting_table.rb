# frozen_string_literal: true

module PitchforkRs
  class Configurator
    # The settings that were made, by name. One that was not made reads as its default but is no key; whatever is stored
    # is verified first, so that `set[:name] = value` is as safe as the directive.
    # @api private
    class SettingTable < Hash
      # @param settings [Hash{Symbol => SettingDefinition}] those there are
      # @param verifier [SettingVerifier]
      def initialize(settings, verifier)
        super() { |table, name| settings[name]&.default_in(table) }
        @settings = settings
        @verifier = verifier
        @places = {}
      end

      # @param name [Symbol]
      # @return [String, nil] where the setting was made, if it was
      def place_of(name)
        @places[name]
      end

      # @param name [Symbol]
      # @param value [Object] `nil` brings the default back where the setting has a use for that
      # @raise [ConfigurationError] if there is no such setting, or it does not accept the value
      def []=(name, value)
        check = @settings[name]&.check
        @verifier.unknown_key("unknown setting", name, writable_names) unless check
        if value.nil? && check.nil_resets?
          delete(name)
        else
          @places[name] = @verifier.place
          super(name, @verifier.verify(name, check, value))
        end
      end
      alias store []=

      # @param others [Array<Hash>]
      # @return [self]
      # @raise [ConfigurationError] as {#[]=}
      def merge!(*others)
        others.each { |other| other.each { |name, value| self[name] = value } }
        self
      end
      alias update merge!

      private

      def writable_names
        @settings.values.select(&:check).map(&:name)
      end
    end
  end
end
