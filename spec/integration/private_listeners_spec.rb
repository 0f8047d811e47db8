# frozen_string_literal: true

require "support/server"

RSpec.describe "a listener of one worker alone", :server do
  let(:app) { <<~RUBY }
    run lambda { |env|
      #{ServerExamples::AT_GATE} if env["PATH_INFO"] == "/wait"
      [200, {}, [[env["pitchfork.worker"].nr, *Pitchfork.listener_names].join(" ")]]
    }
  RUBY

  def private_address(server, number) = server.path("private-#{number}.sock")

  def start_private(options = "tries: 0", workers: 2, config: "")
    start(app, workers: workers, config: <<~RUBY)
      #{config}
      after_worker_fork do |server, worker|
        socket = server.listen("unix:private-\#{worker.nr}.sock", #{options})
        #{noting("returned", "[socket.class, server.listen('unix:private-' + worker.nr.to_s + '.sock').inspect]")}
      end
    RUBY
      .tap { |server| server.wait_for_workers(workers) }
  end

  def body_of(server, number) = server.exchange(ServerExamples::GET, private_address(server, number)).body

  it "is served by it, and known to it and nobody else" do
    server = start_private
    shared = server.addresses.grep(/127/).first
    2.times do |number|
      expect(body_of(server, number)).to eq("#{number} #{shared} #{private_address(server, number)}")
    end
    expect(server.lines("returned")).to eq(['[UNIXServer, "nil"]'] * 2)
    expect(server.messages.grep(/listening on addr=\S+private/).size).to eq(2)
    expect(server.get.body).to match(/\A[01] #{shared} \S+private-\d\.sock\z/)
  end

  it "on a port can be had at once by the worker that comes after it, also after a refork" do
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    server = start(app, config: "after_worker_fork { |s, w| s.listen('127.0.0.1:#{port}', tries: 0) }")
    address = "127.0.0.1:#{port}"
    expect(server.exchange(ServerExamples::GET, address).body).to start_with("0 ")
    server.signal(:USR2)
    server.wait_for_workers(1, generation: 1)
    expect(server.exchange(ServerExamples::GET, address).body).to end_with(" #{address}")
    server.signal(:KILL, to: server.worker.pid)
    server.alive_until("another worker") { server.log.scan(/worker=0 gen=1 pid=\d+ ready/).size == 2 }
    expect(server.exchange(ServerExamples::GET, address).body).to end_with(" #{address}")
    expect(server.log).not_to match(/in use|Error/)
  end

  it "does not keep a worker that leaves for the clients that wait in the reactor" do
    server = start("run ->(_) { [200, {}, [Pitchfork::Info.connections[:reading].to_s]] }", config: <<~'CONFIG')
      client_header_timeout 30
      after_worker_fork { |server, _| server.listen("unix:private-#{Process.pid}.sock", tries: 0) }
    CONFIG
    slow = server.connect.tap { |socket| socket.write("GET / HT") }
    server.alive_until("the hand-over") { server.get.body == "1" }
    pid = server.worker.pid
    began = now
    server.signal(:TERM, to: pid)
    server.wait_for_another_worker(pid)
    expect(now - began).to be < 5
  ensure
    slow&.close
  end

  it "is tried again while its address is in use" do
    TCPServer.open("127.0.0.1", 0) do |taken|
      address = "127.0.0.1:#{taken.addr[1]}"
      server = start(app, ready: false,
                          config: "after_worker_fork { |s, w| s.listen('#{address}', tries: -1, delay: 0.02) }")
      server.wait_for_log(/adding listener failed addr=#{address} \(in use\)/, count: 2)
      server.wait_for_log(/retrying in 0\.02 seconds \(infinite tries left\)/)
      taken.close
      server.wait_for_workers(1)
      expect(server.exchange(ServerExamples::GET, address).body).to start_with("0 ")
    end
  end

  it "costs the worker its life when its address stays in use" do
    TCPServer.open("127.0.0.1", 0) do |taken|
      config = "after_worker_fork { |s, w| s.listen('127.0.0.1:#{taken.addr[1]}', tries: 0) }"
      server = start(app, ready: false, config: config)
      server.wait_for_log(/after_worker_fork error: Address already in use - bind\(127\.0\.0\.1:#{taken.addr[1]}\)/)
      server.signal(:INT)
      expect(server.wait_for_end.exitstatus).to eq(0)
    end
  end

  { "TERM to the worker" => ->(server) { server.signal(:TERM, to: server.worker.pid) },
    "QUIT to the monitor" => ->(server) { server.signal(:QUIT) } }.each do |what, how|
    it "is emptied before it is closed, after #{what}" do
      server = start_private(workers: 1)
      address = private_address(server, 0)
      busy = Thread.new { server.raw("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n", address) }
      server.alive_until("a busy worker") { server.workers.any? { |one| one.status.include?("processing: /wait") } }
      waiting = Array.new(3) { server.connect(address).tap { |socket| socket.write(ServerExamples::GET) } }
      how.call(server)
      server.wait_for_log(/QUIT received/) if what.start_with?("QUIT")
      server.open_gate
      answers = waiting.map { |socket| Timeout.timeout(Waiting::PATIENCE) { RawResponse.parse(socket.read).body } }
      expect([RawResponse.parse(busy.value).body, *answers]).to all(start_with("0 "))
      expect(File.socket?(address)).to be(true)
    end
  end

  it "takes nobody new while it is emptied" do
    server = start_private(workers: 1)
    address = private_address(server, 0)
    waiting = Array.new(3) do
      server.connect(address).tap { |socket| socket.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n") }
    end
    server.alive_until("a busy worker") { server.workers.any? { |one| one.status.include?("processing: /wait") } }
    server.signal(:TERM, to: server.worker.pid)
    # The second one is served as any worker's last. Then the rest is.
    2.times { |round| server.open_gate && Timeout.timeout(Waiting::PATIENCE) { waiting[round].read } }
    wait_until("a refusal") do
      server.connect(address).close
    rescue Errno::ECONNREFUSED
      true
    end
    server.open_gate
    expect(Timeout.timeout(Waiting::PATIENCE) { waiting.last.read }).to start_with("HTTP/1.1 200 OK")
  end

  describe "is refused" do
    it "with options that are wrong" do
      server = start(app, ready: false, config: "after_worker_fork { |s, w| s.listen(80, backlgo: 1) }")
      server.wait_for_log(/error: \S*config\.rb:\d+: listen: unknown option :backlgo; did you mean :backlog\?/)
      server.signal(:INT)
    end

    it "in the monitor, in a mold, and in a request" do
      app = "run ->(env) { [200, {}, [(env['pitchfork.worker'] && $server.listen(0)).to_s]] }"
      attempt = "begin; s.listen(0); rescue => e; #{noting("refused", "e.class.name + ' ' + e.message")}; end"
      server = start(app, config: <<~RUBY)
        after_monitor_ready { |s| #{attempt} }
        after_mold_fork { |s, _| #{attempt} }
        after_worker_ready { |s, _| $server = s; #{attempt} }
      RUBY
      server.alive_until("the hooks") { server.lines("refused").size == 3 }
      expect(server.lines("refused").uniq).to match([/\ARuntimeError listen works in after_worker_fork; /])
      expect(server.get.code).to eq("500")
      expect(server.log).to match(/app error: listen works in after_worker_fork; .*\(RuntimeError\)/)
    end
  end
end
