# frozen_string_literal: true

require_relative "bare_subjects"
require_relative "servers"

module Cow
  # All that can be measured, in the order of the report.
  SUBJECTS = [Alone, Forks, Pitchfork, Puma].freeze
end
