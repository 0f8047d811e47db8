# frozen_string_literal: true

require "json"

LARGE = "x" * Integer(ENV.fetch("CLIENTS_RESPONSE"))

run(lambda do |env|
  body = case env["PATH_INFO"]
         when "/large" then LARGE
         when "/connections" then JSON.generate(PitchforkRs::Info.connections)
         when %r{\A/sleep/(\d+)\z} then sleep(Integer(Regexp.last_match(1))).to_s
         else "#{env["rack.input"]&.read&.bytesize.to_i} bytes\n"
         end
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end)
