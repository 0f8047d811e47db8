# frozen_string_literal: true

require "support/app_notes"

RSpec.describe "pitchfork.socket", :server do
  include AppNotes

  it "is the socket of the connection" do
    start_app(<<~RUBY)
      socket = env["pitchfork.socket"]
      peer = [socket.remote_address.ip_address, socket.peeraddr(false)[1], socket.to_io.class, socket.to_io == socket.to_io]
      [200, {}, [peer.inspect]]
    RUBY
    talk do |client|
      expect(client.read).to end_with("\r\n\r\n#{["127.0.0.1", client.local_address.ip_port, TCPSocket, true].inspect}")
    end
  end

  it "can be waited on and written to, and answers to no more than a socket does" do
    start_app(<<~RUBY)
      socket = env["pitchfork.socket"]
      NOTE.([socket.wait_writable(1).class, socket.respond_to?(:read_nonblock), socket.respond_to?(:nonsense)].inspect)
      begin
        socket.nonsense
      rescue NoMethodError => e
        NOTE.(e.name)
      end
      socket.write("HTTP/1.1 102 Processing\\r\\n\\r\\n")
      [200, {}, ["done"]]
    RUBY
    expect(answer).to match(%r{\AHTTP/1\.1 102 Processing\r\n\r\nHTTP/1\.1 200 OK\r\n.*done\z}m)
    expect(notes(2)).to eq(["[TCPSocket, true, false]", "nonsense"])
  end

  it "is closed with the request, so that nothing of the connection is left open" do
    start_app(<<~RUBY)
      count = -> { Dir.children("/proc/self/fd").size }
      before = count.call
      kept = ($kept ||= [])
      kept << env["pitchfork.socket"].to_io
      [200, {}, [[kept.map(&:closed?), count.call - before].inspect]]
    RUBY
    expect(Array.new(3) { content }).to eq(["[[false], 1]", "[[true, false], 1]", "[[true, true, false], 1]"])
  end

  it "is the hijacked socket after a hijack, and gone after the request" do
    start_app(<<~RUBY)
      taken = env["rack.hijack"].call
      taken.write([taken.equal?(env["pitchfork.socket"].to_io)].inspect)
      taken.close
      [200, {}, []]
    RUBY
    expect(answer).to eq("[true]")
    start_app(<<~RUBY)
      env["rack.response_finished"] << lambda do
        env["pitchfork.socket"].to_io
      rescue IOError => e
        NOTE.(e.message)
      end
      [200, {}, []]
    RUBY
    answer
    expect(notes).to eq(["the connection of this request is already gone"])
  end

  it "may be broken by the application without harm to the worker" do
    start_app(<<~'RUBY')
      socket = env["pitchfork.socket"].to_io
      case env["PATH_INFO"]
      when "/closed" then IO.for_fd(socket.fileno).close
      when "/unsent"
        socket.sync = false
        socket.write("unsent")
        socket.shutdown(Socket::SHUT_WR)
      end
      [200, {}, [Process.pid.to_s]]
    RUBY
    pid = @app.worker.pid
    answer("GET /unsent HTTP/1.1\r\nHost: a\r\n\r\n")
    expect(content("GET /closed HTTP/1.1\r\nHost: a\r\n\r\n")).to eq(pid.to_s)
    expect_served
    expect(@app.worker.pid).to eq(pid)
    expect(@app.log).not_to match(/ERROR/)
  end

  it "says what it answers to without raising, after the request too" do
    start_app(<<~'RUBY')
      env["rack.response_finished"] << lambda do
        socket = env["pitchfork.socket"]
        NOTE.([socket.respond_to?(:write), [socket].flatten == [socket], socket.respond_to?(:call)].inspect)
      rescue StandardError => e
        NOTE.(e.inspect)
      end
      [200, {}, []]
    RUBY
    answer
    expect(notes).to eq(["[false, true, true]"])
  end
end
