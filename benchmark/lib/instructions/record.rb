# frozen_string_literal: true

require "rbconfig"
require "yaml"

module Instructions
  # What was counted before, for each combination of what changes the count.
  class Record
    FILE = File.expand_path("../../instructions.yml", __dir__)
    # Above the noise (medians of three differ by some 1 %), and below anything that is worth a decision.
    TOLERANCE = 0.05
    HEADING = <<~TEXT
      # Instructions of a worker for one short answer. benchmark/instructions compares, benchmark/instructions --record
      # writes; a count that grows by more than 5 % needs a commit that says why.
    TEXT

    # Whether a count is acceptable, and what is to be said about it.
    Verdict = Struct.new(:ok, :text)

    # Ruby executes most of them, and the C library some. Processors make no difference beyond the noise.
    def self.combination
      libc = RUBY_PLATFORM.include?("musl") ? "musl" : `getconf GNU_LIBC_VERSION`.strip
      "ruby #{RUBY_VERSION}, #{RUBY_PLATFORM}, #{libc}"
    end

    def initialize(file = FILE)
      @file = file
      @counts = File.exist?(file) ? YAML.safe_load_file(file) || {} : {}
    end

    def verdict(combination, counted)
      recorded = @counts[combination]
      return Verdict.new(true, "nothing is recorded for #{combination}: --record does it") unless recorded

      percent = format("%+.1f", (counted.fdiv(recorded) - 1) * 100)
      text = "#{percent} % against the #{recorded} that are recorded for #{combination}"
      if counted > recorded * (1 + TOLERANCE)
        Verdict.new(false, "#{text}: more than 5 %. Make it less, or say in a commit why not, with --record")
      elsif counted < recorded * (1 - TOLERANCE)
        Verdict.new(true, "#{text}: well done. --record keeps it so")
      else
        Verdict.new(true, text)
      end
    end

    def write(combination, counted)
      @counts = { **@counts, combination => counted }.sort.to_h
      File.write(@file, HEADING + YAML.dump(@counts, line_width: -1))
    end
  end
end
