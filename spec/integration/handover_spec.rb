# frozen_string_literal: true

require "digest"
require "json"
require "support/persistent_client"
require "support/reactor"
require "support/server"

# Connections that go from a worker to the reactor, and from there to any worker.
RSpec.describe "A connection that has to wait", :server do
  include ReactorExamples

  app = <<~'RUBY'
    require "digest"
    require "json"
    run lambda { |env|
      path = env["PATH_INFO"]
      File.write("journal", "call #{path}\n", mode: "a")
      case path
      when "/counts" then [200, {}, [Pitchfork::Info.connections.to_json]]
      when "/digest"
        body = env["rack.input"].read
        [200, {}, ["#{env["CONTENT_LENGTH"]} #{Digest::SHA256.hexdigest(body)}"]]
      when "/wait" then File.open("gate", "r+", &:gets) && [200, {}, [path]]
      when "/array" then [200, {}, ["0123456789" * 90_000]]
      when "/parts" then [200, {}, Enumerator.new { |parts| 9.times { |nr| parts << (nr.to_s * 100_000) } }]
      when "/file" then [200, {}, File.open("large")]
      when "/peer" then [200, {}, [env["REMOTE_ADDR"]]]
      else [200, {}, [Process.pid.to_s]]
      end
    }
  RUBY

  before { @app = app }

  after { @clients&.each(&:close) }

  # The kernel takes little of a response off the server's hands.
  def start_waiting(config = "", **options)
    @server = start(@app, config: "listen '127.0.0.1:0', sndbuf: 20_000\n#{config}", listen: [], **options)
    @server.alive_until("listening") { @server.addresses.any? }
  end

  def connect(address = @server.addresses.first, buffer: nil, from: nil)
    socket = Socket.new(:INET, :STREAM)
    socket.bind(Addrinfo.tcp(from, 0)) if from
    socket.setsockopt(:SOCKET, :RCVBUF, buffer) if buffer
    socket.connect(Addrinfo.tcp(*address.split(":")))
    PersistentClient.new(socket).tap { |client| (@clients ||= []) << client }
  end

  def request(...) = PersistentClient.request(...)

  # What the reactor says of itself.
  def counts = JSON.parse(@server.get("/counts").body)

  def wait_for(**wanted)
    @server.alive_until(wanted.inspect) { wanted.all? { |name, number| counts[name.to_s] == number } }
  end

  def digest(body) = "#{body.bytesize} #{Digest::SHA256.hexdigest(body)}"

  def chunked(body)
    "#{body.scan(/.{1,50000}/mn).map { |part| "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" }.join}0\r\n\r\n"
  end

  def post(size, coding)
    body = Random.new(size).bytes(size)
    return [body, request("/digest", method: "POST", body: body)] if coding == "with a length"

    [body, "#{request("/digest", "Transfer-Encoding: chunked", method: "POST")}#{chunked(body)}"]
  end

  describe "for its next request" do
    it "does so in the reactor after a second, and any worker answers it" do
      start_waiting(workers: 2)
      client = connect
      pid = client.ask.body.to_i
      wait_for(idle: 1)
      @server.signal(:KILL, to: pid)
      expect(client.ask.body.to_i).not_to eq(pid)
      wait_for(idle: 1)
    end

    it "does not wait for a worker that is busy while another one is not" do
      start_waiting(workers: 2)
      clients = Array.new(20) { connect.tap(&:ask) }
      waiting = connect
      waiting.ask
      waiting.send(request("/wait"))
      @server.alive_until("the call") { @server.lines("journal").include?("call /wait") }
      began = now
      2.times { expect(clients.map { |client| client.ask.status }.uniq).to eq([200]) }
      expect(now - began).to be < 2
      @server.open_gate
      expect(waiting.response.body).to eq("/wait")
    end

    it "goes on also where a worker has more of them than it holds" do
      start_waiting
      clients = Array.new(300) { connect }
      2.times { expect(clients.map { |client| client.ask["connection"] }.uniq).to eq([nil]) }
    end

    it "is told from other clients, and has its requests counted, as before" do
      start_waiting("keepalive_requests 3")
      client = connect(from: "127.0.0.2")
      answers = [client.ask("/peer")]
      wait_for(idle: 1)
      2.times { answers << client.ask("/peer") }
      expect(answers.map(&:body).uniq).to eq(["127.0.0.2"])
      expect(answers.map { |answer| answer["connection"] }).to eq([nil, nil, "close"])
    end

    it "goes on through a refork" do
      start_waiting(workers: 2)
      clients = Array.new(20) { connect.tap(&:ask) }
      partial = connect.tap { |client| client.send("GET / HT") }
      @server.signal(:USR2)
      @server.wait_for_workers(2, generation: 1)
      partial.send("TP/1.1\r\nHost: a\r\n\r\n")
      pids = [*clients.map { |client| client.ask.body.to_i }, partial.response.body.to_i]
      expect(pids - @server.workers.map(&:pid)).to eq([])
    end
  end

  describe "for the rest of its request" do
    it "does so in the reactor if half a head has come, and is answered by whoever is there then" do
      start_waiting
      client = connect
      client.send("GET / HTTP/1.1\r\nHo")
      wait_for(reading: 1)
      pid = @server.worker.pid
      @server.signal(:KILL, to: pid)
      client.send("st: a\r\n\r\n#{request}")
      expect(Array.new(2) { client.response.body.to_i }.uniq).to eq([@server.worker.pid])
    end

    ["with a length", "in chunks"].product([[10, "a small"], [30_000, "a"], [1_000_000, "a large"]])
                                  .each do |coding, (size, how)|
      it "does so without the application if half of #{how} body has come #{coding}, and keeps what is behind it" do
        start_waiting
        client = connect
        body, bytes = post(size, coding)
        half = bytes.bytesize - (size / 2)
        client.send(bytes.byteslice(0, half))
        wait_for(reading: 1)
        expect(@server.lines("journal")).not_to include("call /digest")
        client.send(bytes.byteslice(half..) + request("/next") + request("/last", "Connection: close"))
        expect(client.response.body).to eq(digest(body))
        expect(Array.new(2) { client.response["connection"] }).to eq([nil, "close"])
        expect(client).to be_ended
        expect(@server.lines("journal").grep_v(/counts/)).to eq(["call /digest", "call /next", "call /last"])
      end
    end
  end

  it "is closed by the reactor when its time is over, with 408 if something has come" do
    start_waiting("keepalive_timeout 3\nclient_header_timeout 3\nclient_body_timeout 3")
    idle = connect.tap(&:ask)
    # Two seconds before their end the worker gives all of them away, if there is somebody to take them.
    wait_for_reactor(@server)
    head = connect.tap { |client| client.send("GET / HT") }
    body = connect.tap { |client| client.send(post(100_000, "with a length").last[0, 10_000]) }
    expect(idle).to be_ended
    expect([head, body].map { |client| client.response.status }).to eq([408, 408])
    expect([head, body]).to all(be_ended)
    # No worker counts.
    wait_for(idle: 0, reading: 0, closed_by_deadline: 3)
  end

  it "for a body does not keep the worker, whatever it would wait for a head" do
    start_waiting("client_header_timeout 0.4")
    client = connect
    body, bytes = post(100, "with a length")
    client.send(bytes[0..-2])
    wait_for(reading: 1)
    expect(@server.lines("journal")).not_to include("call /digest")
    client.send(bytes[-1])
    expect(client.response.body).to eq(digest(body))
  end

  it "is not kept waiting by TCP_CORK afterwards" do
    start_waiting("listen '127.0.0.1:0', tcp_nopush: true")
    client = connect(@server.addresses.last)
    client.ask
    wait_for(idle: 1)
    began = now
    10.times { client.ask }
    expect(now - began).to be < 1
  end

  describe "for its client to read" do
    before { start_waiting("keepalive_requests 3") }

    { "of an Array" => "/array", "of a file" => "/file" }.each do |what, path|
      it "does so in the reactor with the rest #{what}, and goes on afterwards" do
        @server.write("large", "x" * 20_000_000)
        client = connect(buffer: 4_096)
        client.send(request(path) + request("/next"))
        wait_for(writing: 1)
        expect(@server.get.body).to eq(@server.worker.pid.to_s)
        expect(@server.lines("journal")).not_to include("call /next")
        expected = { "/array" => "0123456789" * 90_000, "/file" => "x" * 20_000_000 }.fetch(path)
        expect(client.response.content == expected).to be(true)
        expect(Array.new(2) { |nr| nr.zero? ? client.response.body : client.ask.body }.uniq.size).to eq(1)
      end
    end

    it "has these requests counted as well" do
      @server.write("large", "x" * 20_000_000)
      client = connect(buffer: 4_096)
      client.send(request("/file"))
      wait_for(writing: 1)
      client.response
      wait_for(idle: 1)
      expect(Array.new(2) { client.ask["connection"] }).to eq([nil, "close"])
    end

    it "is closed behind the rest if that was to be" do
      client = connect(buffer: 4_096)
      client.send(request("/array", "Connection: close"))
      wait_for(writing: 1)
      expect(client.response.body.bytesize).to eq(900_000)
      expect(client).to be_ended
    end
  end

  { "response_buffer_size 0" => "/array", "response_buffer_size 100_000" => "/array", "" => "/parts" }
    .each do |config, path|
    it "keeps the worker until #{path} is read with #{config.empty? ? "the default" : config}" do
      start_waiting(config)
      slow = connect(buffer: 4_096)
      slow.send(request(path))
      @server.alive_until("the call") { @server.lines("journal").include?("call #{path}") }
      other = connect
      other.send(request)
      expect(other).to be_silent_for(0.5)
      expect(slow.response.content.bytesize).to eq(900_000)
      expect([other.response, slow.ask].map(&:status)).to eq([200, 200])
    end
  end

  describe "while there is no reactor" do
    it "waits for one, and nobody waits for that" do
      start_waiting(ReactorExamples::FORKING_UNLESS_BROKEN)
      @server.write("broken", "")
      clients = Array.new(100) { connect }
      clients.each { |client| expect(client.ask.status).to eq(200) }
      # Nobody reads what is behind it, but it sees the end of its response.
      refused = connect.tap { |client| client.send("GET /\r\n\r\nmore") }
      expect(refused.response.status).to eq(400)
      # More than the queue has room for.
      body, bytes = post(100_000, "with a length")
      parts = Array.new(200) { connect.tap { |client| client.send(bytes.byteslice(0, 15_000)) } }
      @server.wait_for_log(/cannot fork a reactor/, count: 2)
      expect(Array.new(3) { @server.get.code }.uniq).to eq(["200"])
      File.unlink(@server.path("broken"))
      wait_for_reactor(@server)
      parts.each { |client| client.send(bytes.byteslice(15_000..)) }
      expect(parts.map { |client| client.response.body }.uniq).to eq([digest(body)])
      expect(clients.map { |client| client.ask.status }.uniq).to eq([200])
    end

    it "ends with the one that it was in, and the others go on with the next one" do
      start_waiting
      lost = connect
      lost.ask
      wait_for(idle: 1)
      held = connect
      held.ask
      @server.signal(:KILL, to: @server.reactor.pid)
      expect(lost).to be_ended
      wait_for_reactor(@server, count: 2)
      wait_for(idle: 1)
      expect(held.ask.status).to eq(200)
    end
  end

  [["where there is a reactor", true], ["where there is none", false]].each do |where, has_reactor|
    it "comes to its end when it begins while the server drains, #{where}" do
      start_waiting
      (connect.tap(&:ask) && wait_for_reactor(@server)) if has_reactor
      busy = connect.tap { |client| client.send(request("/wait")) }
      @server.alive_until("the call") { @server.lines("journal").include?("call /wait") }
      body, bytes = post(100_000, "with a length")
      large = connect.tap { |client| client.send(bytes.byteslice(0, 10_000)) }
      reading = connect(buffer: 4_096).tap { |client| client.send(request("/array")) }
      @server.signal(:QUIT)
      @server.wait_for_log(/graceful shutdown/)
      @server.open_gate
      expect(busy.response["connection"]).to eq("close")
      large.send(bytes.byteslice(10_000..))
      expect(large.response.body).to eq(digest(body))
      expect(reading.response.body.bytesize).to eq(900_000)
      expect(@server.wait_for_end.exitstatus).to eq(0)
    end
  end

  it "comes to its end when the server drains" do
    start_waiting
    idle = connect.tap(&:ask)
    head = connect.tap { |client| client.send("GET / HT") }
    body, bytes = post(300_000, "in chunks")
    large = connect.tap { |client| client.send(bytes[0, 200_000]) }
    reading = connect(buffer: 4_096).tap { |client| client.send(request("/array")) }
    wait_for(idle: 1, reading: 2, writing: 1)
    @server.signal(:QUIT)
    expect(idle).to be_ended
    expect(reading.response.body.bytesize).to eq(900_000)
    expect(reading).to be_ended
    large.send(bytes.byteslice(200_000..))
    expect(large.response).to have_attributes(body: digest(body), status: 200)
    head.send("TP/1.1\r\nHost: a\r\n\r\n")
    expect(head.response["connection"]).to eq("close")
    expect([large, head]).to all(be_ended)
    expect(@server.wait_for_end.exitstatus).to eq(0)
  end
end
