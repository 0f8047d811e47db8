# frozen_string_literal: true

# For the load balancer, which sends no more requests where a server is about to stop.
class HealthController < ApplicationController
  def show
    info = Pitchfork::Info
    render status: info.shutting_down? ? :service_unavailable : :ok,
           json: { workers: info.workers_count, live_workers: info.live_workers_count, fork_safe: info.fork_safe? }
  end
end
