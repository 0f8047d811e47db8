# frozen_string_literal: true

worker_processes Integer(ENV.fetch("WEB_CONCURRENCY", 4))
timeout 20
refork_after [50, 200, 1000]

# In a mold before each worker, and in a worker before it forks a mold; that one goes on serving. Whoever needs a
# connection next, before or after the fork, opens one.
before_fork do |_server|
  ActiveRecord::Base.connection_handler.clear_all_connections!
end

after_mold_fork do |server, mold|
  # The first request reads the tables' columns, compiles the views and fills caches. Later molds have served already.
  Rack::MockRequest.new(Rails.application).get("/", "HTTP_HOST" => "localhost") if mold.generation.zero?
  server.logger.info("#{mold.to_log} spawned")
end

after_worker_fork do |server, worker|
  Usage.start
  server.logger.info("#{worker.to_log} spawned")
end

before_worker_exit do |_server, _worker|
  Usage.stop
end
