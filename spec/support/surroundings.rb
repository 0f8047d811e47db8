# frozen_string_literal: true

# What programs under test see of the environment that the specs run in.
module Surroundings
  # Whatever it says must not change what they do, but for the Ruby options to test with. RUBYOPT does not tell which
  # these are: Bundler has added to it, and does so again where RubyGems finds BUNDLER_SETUP.
  ENVIRONMENT = %w[RACK_ENV PORT WEB_CONCURRENCY LISTEN_FDS LISTEN_PID UNICORN_FD BUNDLER_SETUP]
                .to_h { |name| [name, nil] }.merge("RUBYOPT" => ENV.fetch("PITCHFORK_RS_RUBYOPT", nil)).freeze
end
