# frozen_string_literal: true

# The application that COW_APP names, with what the benchmark wants to know in the header of each response.

require "rack"
require_relative "probe"

built = Rack::Builder.parse_file(ENV.fetch("COW_APP"))
run Cow::Probe.new(built.is_a?(Array) ? built.first : built) # Rack 2 adds the options found in the file
