# frozen_string_literal: true

# For Bundler, which requires a gem by its name.
require_relative "pitchfork_rs"
