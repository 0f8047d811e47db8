# frozen_string_literal: true

require_relative "subjects"

module Cow
  # How things are called in front of people.
  class Labels
    FORKED = { "forks" => "forked", "pitchfork-rs" => "after a refork" }.freeze

    # @param amounts [Amounts]
    def initialize(amounts)
      @amounts = amounts
    end

    # @param key [Result::Key]
    def subject(key)
      title = SUBJECTS.find { |subject| subject::NAME == key.subject }::TITLE
      key.subject == "forks" ? "#{@amounts.workers} #{title}" : title
    end

    def stage(key)
      case key.stage
      when :warm then key.subject == "pitchfork-rs" ? "before a refork" : "warm"
      when :forked then FORKED.fetch(key.subject)
      else "+ #{later(key)} requests"
      end
    end

    def to_s(key) = "#{subject(key)}, #{stage(key)}"

    private

    def later(key) = key.subject == "alone" ? @amounts.share : @amounts.requests
  end
end
