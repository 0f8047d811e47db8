# frozen_string_literal: true

class ApplicationController < ActionController::Base # rubocop:disable Style/Documentation
  # There is no worker in a request that the application makes up for itself, or with another server.
  before_action { response.set_header("x-worker", request.env["pitchfork.worker"]&.to_log.to_s) }
end
