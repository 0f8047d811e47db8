# frozen_string_literal: true

require_relative "../errors"

module PitchforkRs
  class Configurator
    # Refuses what is wrong, in one line that says where it stands.
    # @api private
    class SettingVerifier
      LONGEST_VALUE = 80
      OWN_FILES = File.expand_path("..", __dir__)
      private_constant :LONGEST_VALUE, :OWN_FILES

      # The spell checker never suggests what was written, which is right but for a String in a Symbol's place. There is
      # no checker under `--disable-did_you_mean`.
      #
      # @param name [#to_s]
      # @param candidates [Array<Symbol>]
      # @return [Symbol, nil] the candidate that was meant, if one comes near enough
      def self.suggestion(name, candidates)
        same = candidates.find { |candidate| candidate.to_s == name.to_s }
        return same if same || !defined?(DidYouMean::SpellChecker)

        DidYouMean::SpellChecker.new(dictionary: candidates).correct(name.to_s).first
      end

      def initialize
        @origin = nil
        @file = nil
      end

      # Says where the settings made by the block come from, if they come from no line of Ruby.
      #
      # @param origin [String] such as `options`
      def from(origin)
        before = @origin
        @origin = origin
        yield
      ensure
        @origin = before
      end

      # Names the configuration file: errors are reported at the line of it that is being evaluated.
      #
      # @param file [String]
      attr_writer :file

      # @param label [String, Symbol] the directive, and its option if it is one
      # @param check [ValueCheck]
      # @return [Object] the value
      # @raise [ConfigurationError] if the check does not accept it
      def verify(label, check, value)
        return value if check.accept?(value)

        reject(label, value, "wanted #{check.wanted}")
      end

      # @param directive [Symbol]
      # @param options [Hash{Symbol => Object}] what the user wrote
      # @param checks [Hash{Symbol => ValueCheck}] the options there are
      # @return [Hash{Symbol => Object}] the options
      # @raise [ConfigurationError] if one is unknown or its value is not accepted
      def verify_options(directive, options, checks)
        reject(directive, options, "wanted options such as #{checks.keys.first}: value") unless options.is_a?(Hash)
        options.each do |name, value|
          check = checks.fetch(name) { unknown_key("#{directive}: unknown option", name, checks.keys) }
          verify("#{directive}: #{name}", check, value)
        end
      end

      # @raise [ConfigurationError] always
      def reject(label, value, complaint)
        complain("#{label}: got #{describe(value)}, #{complaint}")
      end

      # @param what [String] such as `unknown option`
      # @param name [Object] what the user wrote for the key of a Hash
      # @param candidates [Array<Symbol>] the keys there are
      # @raise [ConfigurationError] always
      def unknown_key(what, name, candidates)
        guess = self.class.suggestion(name, candidates)
        complain("#{what} #{shorten(name.inspect)}#{"; did you mean #{guess.inspect}?" if guess}")
      end

      # @param name [#to_s]
      # @param at [String] the place, if it is not the line being evaluated
      # @raise [ConfigurationError] always
      def unknown_directive(name, at: place)
        instead = Configurator.replacement_for(name)
        complain("#{name}: #{instead}", at: at) if instead

        guess = self.class.suggestion(name, Configurator.directives)
        complain("unknown directive #{shorten(name.to_s.inspect)}#{"; did you mean #{guess}?" if guess}", at: at)
      end

      # @raise [ConfigurationError] always; the exception being rescued becomes its cause
      def complain(message, at: place)
        # As bytes: in the locale C a path has no encoding that would go with another text's.
        line = [at, message].compact.map(&:b).join(": ").force_encoding(Encoding::UTF_8).scrub
        raise ConfigurationError, line.gsub(/\s*\n\s*/, " ")
      end

      # @return [String, nil] where the setting being made is written
      def place
        return @origin if @origin

        frames = caller_locations
        frame = frames.find { |candidate| candidate.path == @file }
        frame ||= frames.find { |candidate| !candidate.path.start_with?("#{OWN_FILES}/") }
        frame && "#{frame.path}:#{frame.lineno}"
      end

      private

      def describe(value)
        text = shorten(value.inspect)
        case value
        when nil, true, false then text
        when Proc, Method then "#{text} (#{value.class} of arity #{value.arity})"
        else "#{text} (#{value.class})"
        end
      end

      def shorten(text)
        text.length > LONGEST_VALUE ? "#{text[0, LONGEST_VALUE - 1]}…" : text
      end
    end
  end
end
