# frozen_string_literal: true

require "rack/handler"
require "pitchfork_rs/rack_handler"

# For `rackup -s pitchfork-rs` and `rails server -u pitchfork-rs` with Rack 2.
# @see PitchforkRs::RackHandler
module Rack::Handler::PitchforkRs # rubocop:disable Style/ClassAndModuleChildren
  extend ::PitchforkRs::RackHandler
end

%w[pitchfork-rs pitchfork_rs].each { |name| Rack::Handler.register(name, Rack::Handler::PitchforkRs) }
