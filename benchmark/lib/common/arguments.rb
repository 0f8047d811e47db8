# frozen_string_literal: true

require "optparse"

module Bench
  # What the command lines of the benchmarks have in common. All of it raises OptionParser::ParseError.
  module Arguments
    private

    # Reads the options, besides which there is nothing.
    def read(arguments, parser)
      rest = parser.parse(arguments)
      raise OptionParser::InvalidArgument, rest.join(" ") if rest.any?
    end

    def positive(number)
      raise OptionParser::InvalidArgument, "#{number}, wants more than 0" unless number.positive?

      number
    end

    def choose(names, known)
      unknown = names - known
      raise OptionParser::InvalidArgument, "#{unknown.join(", ")}, known are #{known.join(", ")}" if unknown.any?

      names
    end
  end
end
