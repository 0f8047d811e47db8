# frozen_string_literal: true

require_relative "bare_subjects"
require_relative "servers"

module Cow
  # All that can be measured, in the order of the report: the forks come after the server whose load they copy.
  SUBJECTS = [Alone, Pitchfork, Forks, Puma].freeze
end
