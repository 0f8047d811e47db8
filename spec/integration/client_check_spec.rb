# frozen_string_literal: true

require "support/server"

RSpec.describe "check_client_connection", :server do
  let(:app) { <<~RUBY }
    run lambda { |env|
      #{ServerExamples::AT_GATE} if env["PATH_INFO"] == "/wait"
      File.write("called", env["PATH_INFO"] + "\\n", mode: "a")
      [200, {}, ["hello"]]
    }
  RUBY

  # What the application is called with when a client has left before its turn came.
  def calls_after_leaving(listen, config, leave: :close)
    server = start(app, listen: listen, config: config)
    waiting = server.connect.tap { |socket| socket.write("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }
    server.alive_until("a busy worker") { server.workers.any? { |one| one.status.include?("processing: /wait") } }
    leaving = server.connect
    leaving.write("GET /left HTTP/1.1\r\nHost: a\r\n\r\n")
    leaving.public_send(*leave)
    server.open_gate
    waiting.read
    answer = server.exchange("GET /last HTTP/1.1\r\nHost: a\r\n\r\n")
    expect(answer.body).to eq("hello")
    server.lines("called")
  end

  [["127.0.0.1:0"], ["unix:a.sock"]].each do |listen|
    it "spares the application a client that has left (#{listen.first})" do
      expect(calls_after_leaving(listen, "check_client_connection true")).to eq(%w[/wait /last])
    end

    it "does not ask by default (#{listen.first})" do
      expect(calls_after_leaving(listen, "")).to eq(%w[/wait /left /last])
    end
  end

  it "does not take a client of a Unix socket for gone that only has no more to say" do
    calls = calls_after_leaving(["unix:a.sock"], "check_client_connection true", leave: %i[shutdown WR])
    expect(calls).to eq(%w[/wait /left /last])
  end

  it "asks of a client that has sent a body when the body is there" do
    server = start(app, config: "check_client_connection true")
    expect(server.post("/", "x" * 200_000).body).to eq("hello")
  end

  it "costs no system call while it is off, and one while it is on" do
    skip "strace is not installed" unless system("which strace", out: File::NULL)

    counts = [false, true].map do |check|
      server = start(config: "check_client_connection #{check}")
      trace = spawn("strace", "-f", "-e", "trace=getsockopt", "-o", server.path("trace"), "-p", server.worker.pid.to_s,
                    err: server.path("strace"))
      server.alive_until("strace") { server.read("strace").include?("attached") }
      3.times { server.get }
      Process.kill(:INT, trace)
      Process.wait(trace)
      server.read("trace").scan("getsockopt").size
    end
    expect(counts).to eq([0, 3])
  end
end
