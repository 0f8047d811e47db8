# frozen_string_literal: true

require "rackup/handler"
require "pitchfork_rs/rack_handler"

# For `rackup -s pitchfork-rs` and `rails server -u pitchfork-rs` with the gem rackup.
# @see PitchforkRs::RackHandler
module Rackup::Handler::PitchforkRs # rubocop:disable Style/ClassAndModuleChildren
  extend ::PitchforkRs::RackHandler
end

%w[pitchfork-rs pitchfork_rs].each { |name| Rackup::Handler.register(name, Rackup::Handler::PitchforkRs) }
