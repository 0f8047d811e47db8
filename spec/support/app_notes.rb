# frozen_string_literal: true

require_relative "server"

# An application of a few lines that notes what happens to it, so that order and number can be seen.
module AppNotes
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  # What the application answers to `/fine`, whatever else it does.
  FINE = "return [200, {}, ['fine']] if env['PATH_INFO'] == '/fine'\n"
  # `NOTE.(text)` notes; a `Body` responds to what it is made with, and to `close`.
  PRELUDE = <<~RUBY
    NOTE = ->(text) { File.write("notes", "\#{text}\\n", mode: "a") }
    class Body
      def initialize(**methods) = methods.each { |name, code| define_singleton_method(name, &code) }
      def close = NOTE.("closed")
    end
  RUBY
  private_constant :FINE, :PRELUDE

  # @param code [String] what is done with `env`
  def start_app(code, **options) = @app = start("#{PRELUDE}run lambda { |env|\n#{FINE}#{code}\n}", **options)

  # With a streaming body.
  # @param code [String] what is done with `stream`
  def start_stream(code, **options) = start_app("[200, {}, Body.new(call: ->(stream) {\n#{code}\n})]", **options)

  # What was noted, once there is so much of it.
  def notes(count = 1)
    wait_until("#{count} notes") { @app.lines("notes").size >= count }
    @app.lines("notes")
  end

  def answer(request = GET) = @app.raw(request)

  def content(request = GET) = answer(request).partition("\r\n\r\n").last

  # Gives a connection on which the request was sent.
  def talk(request = GET)
    socket = @app.connect
    socket.write(request)
    Timeout.timeout(10) { yield socket }
  ensure
    socket&.close
  end

  def expect_served
    expect(@app.exchange("GET /fine HTTP/1.1\r\nHost: a\r\n\r\n").body).to eq("fine")
  end
end
