# frozen_string_literal: true

require "json"
require "support/persistent_client"
require "support/reactor"
require "support/server"

# Whoever could be served by somebody else does not wait for a worker that is busy, or gone.
RSpec.describe "A busy worker", :server do
  include ReactorExamples

  app = <<~'RUBY'
    require "json"
    $calls = 0
    $kept = []
    run lambda { |env|
      case env["PATH_INFO"]
      when "/counts" then next [200, {}, [Pitchfork::Info.connections.to_json]]
      when "/wait" then File.open("gate", "r+", &:gets)
      when "/after" then env["rack.after_reply"] << -> { File.open("gate", "r+", &:gets) }
      when "/slow" then sleep 0.02
      when "/fill"
        $kept << File.open(File::NULL) while true rescue nil
      when "/free" then $kept.each(&:close)
      end
      [200, {}, ["#{Process.pid} #{$calls += 1}"]]
    }
  RUBY

  before { @app = app }

  after { @clients&.each(&:close) }

  def start_app(config = "", **options) = @server = start(@app, config: config, **options)

  def connect = PersistentClient.new(@server.connect).tap { |client| (@clients ||= []) << client }

  def request(...) = PersistentClient.request(...)

  def wait_for_readers(count)
    @server.alive_until("#{count} in the reactor") { JSON.parse(@server.get("/counts").body)["reading"] == count }
  end

  # Clients of which the reactor has all but the last byte of a request.
  def waiting(count, path)
    clients = Array.new(count) { connect.tap { |client| client.send(request(path, method: "POST", body: "xx")[..-2]) } }
    wait_for_readers(count)
    clients
  end

  it "has its connection go on elsewhere while the application still does something behind a response" do
    start_app(workers: 2)
    client = connect
    pid, = client.ask("/after").body.split
    client.send(request)
    other, = client.response.body.split
    @server.open_gate
    expect(other).not_to eq(pid)
  end

  it "loses nobody at a stop who has asked before" do
    start_app
    clients = Array.new(8) { connect.tap(&:ask) }
    clients.each { |client| client.send(request("/slow")) }
    @server.signal(:QUIT)
    expect(clients.map { |client| client.response.status }.uniq).to eq([200])
    expect(@server.wait_for_end).to be_success
  end

  it "lets new connections have their turn though requests of the reactor never run out" do
    start_app("keepalive_timeout 0")
    others = waiting(60, "/slow")
    busy = connect.tap { |client| client.send(request("/wait")) }
    @server.alive_until("the call") { !@server.worker.idle? }
    others.each { |client| client.send("x") }
    @server.open_gate
    first = others.first.response.body.split.last.to_i
    between = connect.ask.body.split.last.to_i - first
    expect([busy.response, *others.drop(1).map(&:response)].map(&:status).uniq).to eq([200])
    expect(between).to be < 50
  end

  it "loses no request of the reactor for want of descriptors" do
    start_app(<<~CONFIG)
      after_worker_fork { |_, _| Process.setrlimit(:NOFILE, Dir.children("/proc/self/fd").size + 40) }
    CONFIG
    client = waiting(1, "/").first
    # One is left for the connection of whoever frees them.
    connect.ask("/fill", "Connection: close")
    client.send("x")
    @server.wait_for_log(/listen loop error: .*the reactor's queue/)
    connect.ask("/free")
    expect(client.response.status).to eq(200)
  end

  it "leaves who it was woken for to others that hold clients, if it dies" do
    skip "strace is not installed" unless system("which strace", out: File::NULL)

    start_app(ReactorExamples::FORKING_UNLESS_BROKEN, workers: 2)
    # Else they would go to the reactor after a second, and everybody would look for new connections again.
    @server.write("broken", "")
    wait_until("clients of both workers") { Array.new(2) { connect.ask.body.to_i }.uniq.size == 2 }
    straces = @server.workers.map do |worker|
      spawn("strace", "-e", "inject=accept4:error=EAGAIN:signal=STOP:when=1", "-e", "trace=accept4",
            "-p", worker.pid.to_s, err: @server.path("strace-#{worker.nr}"))
    end
    @server.alive_until("strace") { [0, 1].all? { |nr| @server.read("strace-#{nr}").include?("attached") } }
    client = connect.tap { |late| late.send(request) }
    # The state of a process does not tell: it is stopped for a moment at each system call that is traced, too.
    woken = @server.alive_until("the one that is woken") do
      @server.workers.find { |worker| @server.read("strace-#{worker.nr}").include?("stopped by SIGSTOP") }
    end
    Process.kill(:INT, *straces)
    straces.each { |pid| Process.wait(pid) }
    @server.signal(:KILL, to: woken.pid)
    # The other one has been stopped, too, if it happened to look meanwhile.
    @server.workers.each { |worker| @server.signal(:CONT, to: worker.pid) unless worker.pid == woken.pid }
    expect(client.response.body.to_i).not_to eq(woken.pid)
  end
end
