# frozen_string_literal: true

require "logger"
require "pitchfork_rs"
require "socket"
require "stringio"
require_relative "gc_stress"
require_relative "raw_response"

# Serves single requests in this very process, over a pair of connected sockets.
module InProcess
  include GcStress

  def log = @log ||= StringIO.new

  def logger = @logger ||= Logger.new(log, formatter: ->(level, _, _, text) { "#{level} #{text}\n" })

  def handler(app, buffer_size: 112 * 1024)
    config = PitchforkRs::Configurator.new(config_file: nil, client_body_buffer_size: buffer_size)
    PitchforkRs::RequestHandler.new(app, logger, config.native_settings)
  end

  # Serves one request, and gives all that was answered. The environment, or nil, is in `env` then.
  def serve(request, app, buffer_size: 112 * 1024)
    client, peer = UNIXSocket.pair
    answer = Thread.new do
      client.write(request)
      client.read
    ensure
      client.close
    end
    handler = handler(app, buffer_size: buffer_size)
    @env = stressed { handler.serve(peer) }
    peer.close
    answer.value
  ensure
    # Whatever went wrong here, the client must not wait for more.
    peer&.close
  end

  attr_reader :env

  def exchange(request, app = method(:hello), **options)
    RawResponse.parse(serve(request, app, **options))
  end

  def hello(_env) = [200, { "content-type" => "text/plain" }, ["hello"]]

  # What the application would see of a request.
  def env_of(request)
    serve(request, method(:hello))
    env
  end

  # What a request's body reads as, in the way of the block.
  def body_of(request, buffer_size: 112 * 1024)
    seen = nil
    serve(request, lambda { |env|
      seen = yield env["rack.input"]
      hello(env)
    }, buffer_size: buffer_size)
    seen
  end

  def get(path = "/", *fields) = "GET #{path} HTTP/1.1\r\n#{["Host: example.org", *fields].join("\r\n")}\r\n\r\n"

  def post(body, *fields)
    fields = ["Host: example.org", "Content-Length: #{body.bytesize}", *fields]
    "POST / HTTP/1.1\r\n#{fields.join("\r\n")}\r\n\r\n#{body}"
  end

  def post_chunked(*chunks)
    coded = [*chunks, ""].map { |chunk| "#{chunk.bytesize.to_s(16)}\r\n#{chunk}\r\n" }.join
    "POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\n\r\n#{coded}"
  end
end

RSpec.configure do |config|
  config.include(InProcess, :in_process)
end
