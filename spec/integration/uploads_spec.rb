# frozen_string_literal: true

require "support/app_notes"

RSpec.describe "files of uploads", :server do
  include AppNotes

  UPLOAD = <<~HTTP.gsub("\n", "\r\n") # rubocop:disable Lint/ConstantDefinitionInBlock
    --x
    Content-Disposition: form-data; name="file"; filename="a.txt"
    Content-Type: text/plain

    content
    --x--
  HTTP

  let(:upload) do
    "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=x\r\n" \
      "Content-Length: #{UPLOAD.bytesize}\r\n\r\n#{UPLOAD}"
  end

  it "are removed after the response, and after what the application does then" do
    start_app(<<~RUBY)
      file = Rack::Request.new(env).params["file"][:tempfile]
      env["rack.response_finished"] << ->(*) { NOTE.("there: \#{File.exist?(file.path)}") }
      [200, {}, ["\#{file.read} \#{file.path}"]]
    RUBY
    word, path = content(upload).split
    expect([word, notes]).to eq(["content", ["there: true"]])
    wait_until("the removal") { !File.exist?(path) }
  end

  it "are removed when the reactor still sends the response" do
    start_app(<<~RUBY, config: "listen '127.0.0.1:0', sndbuf: 20_000", listen: [])
      NOTE.(Rack::Request.new(env).params["file"][:tempfile].path)
      [200, {}, ["x" * 900_000]]
    RUBY
    @app.alive_until("listening") { @app.addresses.any? }
    talk(upload) do |socket|
      wait_until("the removal") { !File.exist?(notes.first) }
      expect(socket.read.bytesize).to be > 900_000
    end
  end

  it "are removed when the application has raised, and one that cannot be does not keep the others" do
    start_app(<<~RUBY)
      file = Rack::Request.new(env).params["file"][:tempfile]
      bad = Object.new
      def bad.close! = raise("no luck")
      env["rack.tempfiles"].unshift(bad)
      NOTE.(file.path)
      raise "an error"
    RUBY
    expect(answer(upload)).to start_with("HTTP/1.1 500")
    wait_until("the removal") { !File.exist?(notes.first) }
    @app.wait_for_log(/ERROR .*rack\.tempfiles error: no luck \(RuntimeError\)/)
    expect_served
  end

  it "stay with an application that has taken the connection over" do
    start_app(<<~RUBY, config: "after_request_complete { |_, _, _| $after&.call }")
      file = Rack::Request.new(env).params["file"][:tempfile]
      socket = env["rack.hijack"].call
      $after = lambda do
        socket.write(File.exist?(file.path).to_s)
        socket.close
      end
      [200, {}, []]
    RUBY
    expect(answer(upload)).to eq("true")
  end
end
