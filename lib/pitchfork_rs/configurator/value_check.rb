# frozen_string_literal: true

module PitchforkRs
  class Configurator
    # What a setting accepts: a test, and the words that say what is wanted when it fails.
    # @api private
    class ValueCheck
      class << self
        # @param minimum [Integer]
        # @param nil_resets [Boolean] whether `nil` brings the default back
        def integer(minimum, nil_resets: false)
          reader = ->(text) { Integer(text, 10) }
          new("an Integer of at least #{minimum}", nil_resets: nil_resets, reader: reader) do |value|
            value.is_a?(Integer) && value >= minimum
          end
        end

        # A time that need not be whole.
        def seconds
          new("a number of seconds of at least 0.001", reader: ->(text) { Float(text) }) do |value|
            value.is_a?(Numeric) && value.real? && value >= 0.001
          end
        end

        # A time that need not be whole, or 0.
        def seconds_or_zero
          new("0, or a number of seconds of at least 0.001", reader: ->(text) { Float(text) }) do |value|
            value.is_a?(Numeric) && value.real? && (value.zero? || value >= 0.001)
          end
        end

        def boolean
          new("true or false", reader: { "true" => true, "false" => false }.to_proc) do |value|
            [true, false].include?(value)
          end
        end

        # A switch that may say how often instead.
        #
        # @param option [Symbol] the only key of that Hash
        def switch_or(option)
          new("true, false or #{option}: an Integer of at least 1", reader: boolean.method(:read)) do |value|
            boolean.accept?(value) ||
              (value.is_a?(Hash) && value.keys == [option] && value[option].is_a?(Integer) && value[option].positive?)
          end
        end

        # @param nil_resets [Boolean] whether `nil` brings the default back
        def path(nil_resets: false)
          new("a path, as a String or a Pathname", nil_resets: nil_resets, reader: :itself.to_proc) do |value|
            text = value.respond_to?(:to_path) ? value.to_path : value
            text.is_a?(String) && text.match?(/\A[^\0]+\z/)
          rescue ::ArgumentError, Encoding::CompatibilityError # bytes that are not valid in its encoding
            false
          end
        end

        # @param values [Array<Symbol>]
        def one_of(*values)
          new("one of #{values.map(&:inspect).join(", ")}", reader: :to_sym.to_proc) { |value| values.include?(value) }
        end

        # @param methods [Array<Symbol>]
        # @param nil_resets [Boolean] whether `nil` brings the default back
        def responding_to(*methods, nil_resets: false)
          new("an object that responds to #{list(methods)}", nil_resets: nil_resets) do |value|
            methods.all? { |name| value.respond_to?(name) }
          end
        end

        # @param parameters [Array<Symbol>] what the hook is called with
        def hook(*parameters)
          count = parameters.size
          arguments = "#{count} argument#{"s" if count > 1} (#{parameters.join(", ")})"
          new("a block, Proc or Method that takes exactly #{arguments}", nil_resets: true) do |value|
            (value.is_a?(Proc) || value.is_a?(Method)) && value.arity == count
          end
        end

        # The name of a signal, or what gives one for a pid.
        def signal
          by_pid = hook(:pid)
          new("the name of a signal, such as :KILL, or #{by_pid.wanted}", nil_resets: true) do |value|
            by_pid.accept?(value) ||
              (value.is_a?(Symbol) && value != :EXIT && Signal.list.key?(value.name.delete_prefix("SIG")))
          end
        end

        def refork_limits
          new("an Array of Integers of at least 1, such as [50, 100, 1000], the last of which may be false") do |value|
            next false if !value.is_a?(Array) || value.empty?

            counts = value.last == false ? value[0...-1] : value
            counts.all? { |limit| limit.is_a?(Integer) && limit.positive? }
          end
        end

        private

        def list(words)
          words.size > 1 ? "#{words[0...-1].join(", ")} and #{words.last}" : words.first.to_s
        end
      end

      # @return [String] what a good value is
      attr_reader :wanted

      # @param reader [Proc, nil] makes a value of text, where good values can be written so
      def initialize(wanted, nil_resets: false, reader: nil, &test)
        @wanted = wanted.freeze
        @nil_resets = nil_resets
        @reader = reader
        @test = test
      end

      def accept?(value)
        @test.call(value)
      end

      # @return [Boolean] whether good values can be written as text
      def textual?
        !@reader.nil?
      end

      # @param text [String]
      # @return [Object] what the text says, if it says something that is accepted; else the text
      def read(text)
        value = @reader&.call(text)
        value.nil? ? text : value
      rescue ::ArgumentError, TypeError
        text
      end

      def nil_resets?
        @nil_resets
      end
    end
  end
end
