# frozen_string_literal: true

require_relative "server"

# A client that does not send and read at once, and a server to try it on.
module SlowClient
  APP = <<~RUBY
    require 'digest'
    class Slow
      def initialize(size) = @size = size
      PART = ("x" * 65_536).freeze
      def each = (@size / PART.bytesize).times { yield PART }
    end
    run lambda { |env|
      case env["PATH_INFO"]
      when "/each" then [200, {}, Slow.new(64 << 20)]
      when "/file" then [200, {}, File.open("large")]
      when "/digest"
        digest, buffer = Digest::SHA256.new, +""
        digest << buffer while env["rack.input"].read(16_384, buffer)
        [200, {}, [digest.hexdigest]]
      when "/start" then [200, {}, [env["rack.input"].read(3)]]
      else
        body = env["rack.input"].read
        input = env["rack.input"]
        [200, { "x-length" => env["CONTENT_LENGTH"].inspect, "x-coding" => env["HTTP_TRANSFER_ENCODING"].inspect,
                "x-rewind" => input.respond_to?(:rewind).to_s }, [Process.pid.to_s, " ", body]]
      end
    }
  RUBY
  LIMITS = "timeout 3\nclient_header_timeout 1\nclient_body_timeout 1\nclient_min_rate 1000\nwrite_timeout 1\n"
  private_constant :APP, :LIMITS

  def start_slow(config = LIMITS)
    @slow = start(APP, config: config)
    @worker = @slow.worker.pid
    @slow
  end

  # The worker is the same as before, and serves the next client.
  def expect_worker_unharmed
    response = @slow.exchange(get)
    expect([response.status, response.body.to_i]).to eq([200, @worker])
    expect(@slow.log).not_to match(/timed out|KILL|FATAL|app error/)
  end

  def status_of(socket) = answer(socket)[%r{\AHTTP/1\.1 (\d+)}, 1].to_i

  def get(path = "/") = "GET #{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

  def post(body, path = "/") = "POST #{path} HTTP/1.1\r\nHost: a\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"

  # A connection of the server in `@slow` on which something was sent.
  def send_only(bytes) = @slow.connect.tap { |socket| socket.write(bytes) }

  # Sends bytes a few at a time, until there are no more, or the server has answered.
  def trickle(socket, bytes, every:, size: 1)
    bytes.scan(/.{1,#{size}}/mn) do |piece|
      break if socket.wait_readable(every)

      socket.write(piece)
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  end

  # All that comes, to the end of the connection or, if that stays open, of the response.
  def answer(socket)
    received = +"".b
    Timeout.timeout(Waiting::PATIENCE) { @slow.read_response(socket, received: received) }
  rescue Errno::ECONNRESET
    received
  ensure
    socket.close
  end
end
