# frozen_string_literal: true

# The yardstick: the application in one process without a server, called once. It prints what the kernel says about
# its own memory.
require "rack"

built = Rack::Builder.parse_file(File.expand_path("config.ru", __dir__))
app = built.is_a?(Array) ? built.first : built # Rack 2 adds the options found in the file
app.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/", "QUERY_STRING" => "" })

puts "pid=#{Process.pid}", File.read("/proc/self/smaps_rollup")
