# frozen_string_literal: true

require "support/persistent_client"
require "support/server"

# Connections that stay open for one request after the other.
RSpec.describe "A connection", :server do
  app = <<~'RUBY'
    journal = ->(text) { File.write("journal", "#{text}\n", mode: "a") }
    run lambda { |env|
      path = env["PATH_INFO"]
      journal.("call #{path}")
      env["rack.response_finished"] << ->(*) { journal.("finished #{path}") }
      case path
      when "/chunks" then [200, {}, Enumerator.new { |parts| %w[one two].each { |part| parts << part } }]
      when "/read" then [200, {}, [env["rack.input"].read]]
      when "/nothing" then [204, {}, []]
      when "/close" then [200, { "connection" => "close" }, [path]]
      when "/short" then [200, { "content-length" => "9" }, [path]]
      when "/raise" then raise "raised"
      when "/stream" then [200, { "content-length" => "2" }, ->(stream) { stream.write("ab") && stream.close }]
      when "/peer" then [200, {}, [env["pitchfork.socket"].remote_address.inspect_sockaddr]]
      when "/wait" then File.open("gate", "r+", &:gets) && [200, {}, [path]]
      when "/fork" then ($copy = true unless fork) || [200, {}, [$copy.inspect]]
      when "/fork/body" then [200, {}, Enumerator.new { |parts| fork && sleep(0.1); 2.times { |nr| parts << nr.to_s } }]
      when "/hints" then [200, {}, [path]].tap { env["rack.early_hints"].call("link" => "</a>") }
      when "/keys" then [200, {}, [env.keys.grep(/HTTP|CONTENT/).sort.join(" ")]]
      when "/hijack"
        io = env["rack.hijack"].call
        io.write("hijacked #{io.gets}")
        io.close
        [200, {}, []]
      else [200, {}, [path, " ", Process.pid.to_s]]
      end
    }
  RUBY

  def start_keeping(config = "", **options)
    @server = start(@app, config: config, **options)
  end

  def connect(*address) = PersistentClient.new(@server.connect(*address)).tap { |client| (@clients ||= []) << client }

  def request(...) = PersistentClient.request(...)

  before { @app = app }

  after { @clients&.each(&:close) }

  describe "goes on" do
    it "behind a response to HTTP/1.1, and nothing says so" do
      start_keeping
      client = connect
      answers = Array.new(3) { |number| client.ask("/#{number}") }
      expect(answers.map { |answer| answer.body[0, 2] }).to eq(%w[/0 /1 /2])
      expect(answers.map { |answer| answer["connection"] }.uniq).to eq([nil])
    end

    it "behind a response to HTTP/1.0 only if the client asks for it, and is told" do
      start_keeping
      client = connect
      2.times { expect(client.ask("/", "Connection: Keep-Alive", version: "1.0")["connection"]).to eq("keep-alive") }
      expect(client.ask("/", version: "1.0")["connection"]).to eq("close")
      expect(client).to be_ended
    end

    it "on a Unix socket" do
      socket = File.join(Dir.pwd, "socket")
      start_keeping(listen: [socket])
      client = connect(socket)
      expect(Array.new(3) { client.ask.status }).to eq([200] * 3)
    end

    it "behind bodies and responses of each kind" do
      start_keeping
      client = connect
      expect(client.ask("/chunks").content).to eq("onetwo")
      expect(client.ask("/chunks", method: "HEAD").body).to eq("")
      expect(client.ask("/x", method: "HEAD")["content-length"].to_i).to be > 2
      expect(client.ask("/nothing").status).to eq(204)
      expect(client.ask("/read", method: "POST", body: "abc").body).to eq("abc")
      client.send("#{request("/read", "Transfer-Encoding: chunked", method: "POST")}3\r\nabc\r\n0\r\n\r\n")
      expect(client.response.body).to eq("abc")
      expect(client.ask("/end", "Connection: close")["connection"]).to eq("close")
      expect(client).to be_ended
    end

    it "with early hints before each response" do
      start_keeping("early_hints true")
      client = connect
      2.times do
        client.send(request("/hints"))
        expect([client.interim, client.response.body]).to eq([103, "/hints"])
      end
    end

    it "with an environment that knows nothing of the last request" do
      start_keeping
      client = connect
      client.ask("/keys", "X-First: 1", "Content-Type: text/plain", method: "POST", body: "abc")
      expect(client.ask("/keys").body).to eq("HTTP_HOST HTTP_VERSION")
    end
  end

  describe "ends" do
    { "the client asks for it" => ["/", "Connection: close"],
      "the client asks for it in a list" => ["/", "Connection: te, close"],
      "the application asks for it" => ["/close"], "the response is a stream" => ["/stream"],
      "the application has used its socket" => ["/peer"], "the application raises" => ["/raise"] }.each do |why, ask|
      it "behind the response if #{why}, which says so" do
        start_keeping
        client = connect
        client.ask
        expect(client.ask(*ask)["connection"]).to eq("close")
        expect(client).to be_ended
      end
    end

    it "where a body is shorter than was promised" do
      start_keeping
      client = connect
      client.send(request("/short") + request("/next"))
      expect(client.rest).to end_with("\r\n\r\n/short")
      expect(@server.lines("journal")).not_to include("call /next")
    end

    it "behind each response with keepalive_timeout 0" do
      start_keeping("keepalive_timeout 0")
      ["1.0", "1.1"].each do |version|
        client = connect
        expect(client.ask("/", "Connection: keep-alive", version: version)["connection"]).to eq("close")
        expect(client).to be_ended
      end
    end

    it "behind as many requests as keepalive_requests allows" do
      start_keeping("keepalive_requests 3")
      client = connect
      expect(Array.new(3) { client.ask["connection"] }).to eq([nil, nil, "close"])
      expect(client).to be_ended
    end

    it "without a word when it has been idle for keepalive_timeout" do
      # Shorter than a worker holds it, and the other one longer than it is waited for here.
      start_keeping("keepalive_timeout 0.8\nclient_header_timeout 60")
      client = connect
      began = last = now
      while last - began < 1.2
        last = now
        client.ask
        expect(client).to be_silent_for(0.1)
      end
      expect(client).to be_ended
      expect(now - last).to be > 0.75
      expect(@server.log).not_to include("answered 408")
    end

    it "with 408 when the head of a later request takes longer than client_header_timeout, from its first byte on" do
      start_keeping("keepalive_timeout 60\nclient_header_timeout 0.5")
      client = connect
      client.ask
      expect(client).to be_silent_for(0.7)
      began = now
      client.send("GET / HT")
      expect(client.response.status).to eq(408)
      expect(now - began).to be_between(0.4, 5)
      expect(client).to be_ended
    end
  end

  describe "with pipelined requests" do
    it "has them answered in their order" do
      start_keeping
      client = connect
      client.send(request("/0") + request("/1", method: "HEAD") + request("/read", method: "POST", body: "abc") +
                  request("/chunks") + request("/4", "Connection: close") + request("/5"))
      answers = [false, true, false, false, false].map { |head| client.response(head: head) }
      expect(answers.map { |answer| answer.content[0, 6] }.each { |text| text.sub!(/ .*/, "") })
        .to eq(["/0", "", "abc", "onetwo", "/4"])
      expect(client).to be_ended
      expect(@server.lines("journal")).not_to include("call /5")
    end

    it "has the callbacks of one run before the next is called" do
      start_keeping
      client = connect
      client.send(request("/0") + request("/1"))
      2.times { client.response }
      @server.alive_until("all callbacks") { @server.lines("journal").size == 4 }
      expect(@server.lines("journal")).to eq(["call /0", "finished /0", "call /1", "finished /1"])
    end

    it "has nothing behind a malformed one answered" do
      start_keeping
      client = connect
      malformed = request("/1", "Content-Length: 1", method: "POST", body: "x")
      client.send(request("/0") + malformed + request("/2"))
      expect([client.response.status, client.response.status]).to eq([200, 400])
      expect(client).to be_ended
      expect(@server.lines("journal").grep(/call/)).to eq(["call /0"])
    end

    [16_383, 16_384, 16_385, 40_000].each do |size|
      it "finds the next one behind a request of #{size} bytes" do
        start_keeping
        head = request("/read", method: "POST", body: "x" * size)[/.*\r\n\r\n/m]
        body = "x" * (size - head.bytesize)
        client = connect
        2.times do
          client.send(request("/read", method: "POST", body: body).tap { |bytes| bytes << request("/next") })
          expect(client.response.body).to eq(body)
          expect(client.response.body).to start_with("/next")
        end
      end
    end

    it "finds the next one behind chunks that pass through" do
      start_keeping("rewindable_input false")
      client = connect
      client.send(request("/read", "Transfer-Encoding: chunked", method: "POST"))
      # The body is read by the application then, with what is behind it.
      @server.alive_until("the call") { @server.lines("journal").include?("call /read") }
      client.send("3\r\nabc\r\n0\r\n\r\n#{request("/next")}#{request("/last")}")
      expect(client.response.body).to eq("abc")
      expect(Array.new(2) { client.response.body[0, 5] }).to eq(["/next", "/last"])
    end
  end

  describe "with a body that the application leaves alone" do
    it "goes on if the body has come" do
      start_keeping
      client = connect
      client.send(request("/0", method: "POST", body: "x" * 50_000) + request("/1"))
      expect(client.response["connection"]).to be_nil
      expect(client.response.body).to start_with("/1")
    end

    it "ends if it has not come, where it passes through" do
      start_keeping("rewindable_input false")
      client = connect
      client.send(request("/0", "Content-Length: 10", method: "POST"))
      expect(client.response["connection"]).to eq("close")
      client.send("GET /behind")
      client.close
      expect(@server.exchange(request).status).to eq(200)
      expect(@server.lines("journal")).not_to include("call /behind")
    end

    it "goes on if that was buffered, however long it is" do
      start_keeping
      client = connect
      client.send(request("/0", method: "POST", body: "x" * 2_000_000) + request("/1"))
      expect(client.response["connection"]).to be_nil
      expect(client.response.body).to start_with("/1")
    end

    it "ends if it is too long, where it passes through" do
      start_keeping("rewindable_input false")
      client = connect
      client.send(request("/0", method: "POST", body: "x" * 200_000) + request("/1"))
      expect(client.response["connection"]).to eq("close")
      expect(client).to be_ended
    end

    it "ends if the client waits for 100 Continue, and goes on if it was told to" do
      start_keeping
      expecting = ["Expect: 100-continue", "Content-Length: 3"]
      client = connect
      client.send(request("/read", *expecting, method: "POST"))
      expect(client.interim).to eq(100)
      client.send("abc")
      expect(client.response.body).to eq("abc")
      client.send(request("/0", *expecting, method: "POST"))
      expect(client.response["connection"]).to eq("close")
      expect(client).to be_ended
    end
  end

  describe "that the application takes over" do
    it "gives what has come behind the request, also behind others" do
      start_keeping
      client = connect
      client.ask
      client.send("#{request("/0")}#{request("/hijack")}line\n")
      expect(client.response.body).to start_with("/0")
      expect(client.rest).to eq("hijacked line\n")
    end

    it "leaves the worker with others" do
      start_keeping
      other = connect
      other.ask
      client = connect
      client.ask
      client.send("#{request("/hijack")}line\n")
      expect(client.rest).to eq("hijacked line\n")
      expect(other.ask.status).to eq(200)
    end
  end

  it "has one response of a request in which the application forks and returns twice" do
    start_keeping
    client = connect
    pid = @server.worker.pid
    expect(client.ask("/fork").body).to eq("nil")
    @server.alive_until("the end of the copy") { @server.processes.size == 1 + @server.children.size }
    expect(client.ask.body).to eq("/ #{pid}")
  end

  it "is not for a copy of the worker that is made while the body is" do
    start_keeping
    client = connect
    # The copy, which has the head to send as well, is first.
    expect(client.ask("/fork/body").content).to eq("01")
    @server.alive_until("the end of the copy") { @server.processes.size == 1 + @server.children.size }
    expect(client.ask.body).to eq("/ #{@server.worker.pid}")
  end

  # Processor time of the worker, in hundredths of a second.
  def ticks = File.read("/proc/#{@server.worker.pid}/stat").rpartition(")").last.split.values_at(11, 12).sum(&:to_i)

  def descriptors = Dir.children("/proc/#{@server.worker.pid}/fd").size

  it "costs nothing when it has gone, also when its time has passed" do
    socket = File.join(Dir.pwd, "socket")
    start_keeping("client_header_timeout 0.8\nkeepalive_timeout 0.8", listen: [socket])
    alone = descriptors
    silent = connect(socket)
    @server.alive_until("the connection at the worker") { descriptors > alone }
    silent.close
    connect(socket).tap(&:ask).close
    @server.alive_until("the end of both") { descriptors == alone }
    before = ticks
    sleep 1
    expect(ticks - before).to be < 10
  end

  it "is not kept waiting by TCP_CORK" do
    @server = start(@app, listen: [], config: "listen '127.0.0.1:0', tcp_nopush: true")
    @server.alive_until("listening") { @server.addresses.any? }
    client = connect
    client.ask
    began = now
    10.times { client.ask }
    expect(now - began).to be < 1
  end

  # Whether the reactor, which has the connection of a busy worker, has read what this client has sent, and is done.
  def passed_on?(client)
    ports = [@server.port, client.port].map { |port| format(":%04X", port) }
    connections = File.readlines("/proc/net/tcp").map(&:split)
    connection = connections.find { |fields| fields[1, 2].map { |address| address[-5..] } == ports }
    connection[4].end_with?(":00000000") && @server.reactor&.sleeping?
  end

  describe "and others" do
    it "take turns, whoever has pipelined requests, waits for one answer, or is new" do
      start_keeping
      held, chatty = Array.new(2) { connect.tap(&:ask) }
      chatty.send(request("/wait") + (request("/busy") * 20))
      @server.alive_until("the request") { @server.lines("journal").include?("call /wait") }
      held.send(request("/held"))
      new = Array.new(5) { |number| connect.tap { |client| client.send(request("/new/#{number}")) } }
      @server.alive_until("the hand-over") { passed_on?(held) }
      @server.open_gate
      21.times { chatty.response }
      [held, *new].each { |client| expect(client.response.status).to eq(200) }
      calls = @server.lines("journal").grep(/call/).drop_while { |line| line != "call /wait" }
      expect(calls.index("call /held")).to be <= 4
      expect(calls.index("call /new/0")).to be <= 4
      expect(calls.index("call /new/4")).to be <= 11
      expect(calls[1..12].count("call /busy")).to be >= 5
    end

    it "are served while some have sent half a head, or nothing" do
      start_keeping("client_header_timeout 30")
      slow = Array.new(20) { |number| connect.tap { |client| client.send("GET / HT") if number.even? } }
      began = now
      expect(Array.new(5) { @server.exchange(request).status }.uniq).to eq([200])
      expect(now - began).to be < 10
      slow.each_with_index { |client, number| client.send(number.even? ? "TP/1.1\r\nHost: a\r\n\r\n" : request) }
      expect(slow.map { |client| client.response.status }.uniq).to eq([200])
    end
  end

  it "keeps nobody waiting who has sent all of a request, not even where a worker has more than it holds" do
    start_keeping("client_header_timeout 30")
    slow = Array.new(300) { connect.tap { |client| client.send("GET / HT") } }
    began = now
    expect(@server.exchange(request).status).to eq(200)
    expect(now - began).to be < 10
    slow.each { |client| client.send("TP/1.1\r\nHost: a\r\n\r\n") }
    expect(slow.map { |client| client.response.status }.uniq).to eq([200])
  end

  describe "of a worker that leaves" do
    it "ends when it is idle, and is answered when it is not" do
      start_keeping
      idle, busy, new, partial = Array.new(4) { connect }
      idle.ask
      partial.send("GET / HT")
      busy.ask
      busy.send(request("/wait"))
      @server.alive_until("the request") { @server.lines("journal").include?("call /wait") }
      new.send(request("/new"))
      @server.signal(:QUIT)
      @server.wait_for_log(/graceful shutdown/)
      expect(idle).to be_ended
      @server.open_gate
      expect(busy.response["connection"]).to eq("close")
      expect(busy).to be_ended
      expect(new.response["connection"]).to eq("close")
      partial.send("TP/1.1\r\nHost: a\r\n\r\n")
      expect(partial.response["connection"]).to eq("close")
      expect(@server.wait_for_end.exitstatus).to eq(0)
    end

    it "goes on with another if only that worker is told to, by a signal" do
      start_keeping
      client = connect
      pid = @server.worker.pid
      expect(client.ask.body).to eq("/ #{pid}")
      @server.signal(:TERM, to: pid)
      @server.wait_for_another_worker(pid)
      expect(client.ask.body).to eq("/ #{@server.worker.pid}")
    end

    it "goes on when the worker promotes itself, with whoever comes" do
      start_keeping
      client = connect
      client.ask
      @server.signal(:USR2)
      @server.wait_for_workers(1, generation: 1)
      expect(Array.new(2) { client.ask.body }).to eq(["/ #{@server.worker.pid}"] * 2)
    end
  end
end
