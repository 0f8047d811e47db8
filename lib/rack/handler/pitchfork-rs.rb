# frozen_string_literal: true

# The registry looks for a file of the very name that it was asked for.
require_relative "pitchfork_rs"
