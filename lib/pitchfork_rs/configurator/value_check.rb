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
          new("an Integer of at least #{minimum}", nil_resets: nil_resets) do |value|
            value.is_a?(Integer) && value >= minimum
          end
        end

        # A time that need not be whole.
        def seconds
          new("a number of seconds of at least 0.001") { |value| value.is_a?(Numeric) && value.real? && value >= 0.001 }
        end

        def boolean
          new("true or false") { |value| [true, false].include?(value) }
        end

        # @param nil_resets [Boolean] whether `nil` brings the default back
        def path(nil_resets: false)
          new("a path, as a String or a Pathname", nil_resets: nil_resets) do |value|
            text = value.respond_to?(:to_path) ? value.to_path : value
            text.is_a?(String) && text.match?(/\A[^\0]+\z/)
          rescue ::ArgumentError, Encoding::CompatibilityError # bytes that are not valid in its encoding
            false
          end
        end

        # @param values [Array<Symbol>]
        def one_of(*values)
          new("one of #{values.map(&:inspect).join(", ")}") { |value| values.include?(value) }
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

      def initialize(wanted, nil_resets: false, &test)
        @wanted = wanted.freeze
        @nil_resets = nil_resets
        @test = test
      end

      def accept?(value)
        @test.call(value)
      end

      def nil_resets?
        @nil_resets
      end
    end
  end
end
