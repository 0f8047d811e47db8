# frozen_string_literal: true

# An application whose first request is the expensive one: it fills a cache that every later request uses, as a large
# application fills its caches of routes, translations and templates.
records = Integer(ENV.fetch("DEMO_RECORDS", "400000"))
cache = nil

run(lambda do |env|
  cache ||= Array.new(records) { |i| "row_#{i}_#{"x" * 100}" }

  # Keeps this worker busy for a moment, so that requests sent at the same time reach the others.
  sleep 0.05 if env["QUERY_STRING"] == "linger"

  [200, { "content-type" => "text/plain" }, ["pid=#{Process.pid} records=#{cache.size}\n"]]
end)
