# frozen_string_literal: true

require "fileutils"
require_relative "../common/clock"
require_relative "result"
require_relative "subject"

module Cow
  # Measures all subjects with one application, one after the other, and that over again.
  class Measurement
    # @param subjects [Array<Class>] of Subject
    # @param limit [Float] seconds after which no further round begins
    def initialize(application, subjects, amounts, directory:, rounds:, limit:)
      @result = Result.new(application)
      @subjects = subjects
      @amounts = amounts
      @directory = directory
      @rounds = rounds
      @limit = limit
    end

    # @return [Result]
    def run
      @result.application.prepare
      measure_rounds
      @result
    rescue Bench::Tool::Failed => e
      @result.failures["preparation"] = e.message
      @result
    end

    private

    def measure_rounds
      finish = Bench.now + @limit
      longest = 0
      @rounds.times do |round|
        began = Bench.now
        break note_time(round) if round.positive? && began + longest > finish

        remaining.each_with_object({}) { |subject, earlier| measure(subject, round, earlier) }
        longest = [longest, Bench.now - began].max
      end
    end

    # Those that have not failed.
    def remaining = @subjects.reject { |subject| @result.failures.key?(subject::NAME) }

    # One that fails is out, and the others go on.
    def measure(subject, round, earlier)
      name = subject::NAME
      directory = File.join(@directory, "#{@result.application.name}-#{name}-#{round}")
      FileUtils.mkdir_p(directory)
      earlier[name] = subject.new(@result.application, @amounts, directory, earlier).measure
      @result.add(round, name, earlier[name])
    rescue Subject::Failed => e
      @result.failures[name] = e.message
    end

    def note_time(number)
      @result.notes << "#{number} of #{@rounds} rounds: there was no time for more"
    end
  end
end
