# frozen_string_literal: true

require "digest"
require "support/slow_client"

# Clients that take their time, or use more than their share. A worker is never lost to one.
RSpec.describe "A slow or large client", :server do
  include SlowClient

  chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

  it "gets 408 when the head does not arrive in time, though each byte does" do
    start_slow
    socket = @slow.connect
    began = now
    trickle(socket, get, every: 0.1)
    expect(status_of(socket)).to eq(408)
    expect(now - began).to be > 0.9
    expect_worker_unharmed
  end

  it "gets 408 when it goes silent in the head" do
    start_slow
    socket = send_only("GET / HTTP/1.1\r\nHo")
    expect(status_of(socket)).to eq(408)
    expect(@slow.messages.grep(/answered 408/).size).to eq(1)
    expect_worker_unharmed
  end

  it "is left without a word when it never sends a byte" do
    start_slow
    expect(answer(@slow.connect)).to eq("")
    expect(@slow.log).not_to include("answered 408")
    expect_worker_unharmed
  end

  { "with a length" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
    "in chunks" => "#{chunked}5\r\nab" }.each do |how, request|
    it "gets 408 when it goes silent in a body #{how}" do
      start_slow
      expect(status_of(send_only(request))).to eq(408)
      expect_worker_unharmed
    end
  end

  it "gets 408 when its body is slower than the minimum rate, though it is never silent" do
    start_slow
    socket = send_only("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
    began = now
    trickle(socket, "x" * 100_000, every: 0.1, size: 20)
    expect(status_of(socket)).to eq(408)
    expect(now - began).to be_between(0.9, 10)
    expect_worker_unharmed
  end

  it "is served when its body takes longer than the timeout, above the minimum rate" do
    start_slow
    body = "x" * 20_000
    socket = send_only("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n")
    trickle(socket, body, every: 0.1, size: 400)
    expect(answer(socket)).to start_with("HTTP/1.1 200 OK").and end_with(" #{body}")
    expect_worker_unharmed
  end

  it "is served when its chunked body takes longer than the timeout" do
    start_slow
    socket = send_only(chunked)
    trickle(socket, "4\r\nabcd\r\n" * 4_000, every: 0.1, size: 800)
    socket.write("0\r\n\r\n")
    expect(answer(socket)).to start_with("HTTP/1.1 200 OK").and end_with(" #{"abcd" * 4_000}")
    expect_worker_unharmed
  end

  it "is served when its head takes longer than the timeout, if it may" do
    start_slow("timeout 3\nclient_header_timeout 10\n")
    socket = @slow.connect
    began = now
    trickle(socket, get, every: 5.5 / get.bytesize)
    expect(status_of(socket)).to eq(200)
    expect(now - began).to be > 5
    expect_worker_unharmed
  end

  # Whether the server's end of a connection is open. The client's does not know while there is something to read.
  def open_at_server?(socket)
    ports = [@slow.port, socket.local_address.ip_port].map { |port| format(":%04X", port) }
    connections = File.readlines("/proc/net/tcp").map { |line| line.split[1, 3] }
    connections.any? { |*ends, state| state == "01" && ends.map { |address| address[/:\h+/] } == ports }
  end

  { "/each" => "the worker", "/file" => "the reactor" }.each do |path, who|
    it "is given up by #{who} when it reads nothing of a large response (#{path})" do
      start_slow("write_timeout 2\n")
      @slow.write("large", "x" * (64 << 20))
      began = now
      socket = send_only(get(path))
      wait_until("the next client is served") { @slow.exchange(get).status == 200 }
      # A worker that waits for it serves nobody else.
      expect(open_at_server?(socket)).to be(who != "the worker")
      wait_until("the end of the connection") { !open_at_server?(socket) }
      expect(now - began).to be > 1.9
      expect(answer(socket).bytesize).to be < (64 << 20)
      expect_worker_unharmed
    end
  end

  it "does not hold a worker for ever when it reads a byte a second" do
    start_slow
    socket = send_only(get("/each"))
    reader = Thread.new { loop { socket.readpartial(1) && sleep(1) } }
    wait_until("the next client is served", seconds: 10) { @slow.exchange(get).status == 200 }
    expect_worker_unharmed
  ensure
    reader&.kill
  end

  it "that closes while a response is written is no error, and its body is closed" do
    start_slow
    socket = send_only(get("/each"))
    socket.readpartial(10)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    socket.close
    expect_worker_unharmed
    expect(@slow.log).not_to include("ERROR")
  end

  it "that waits for 100 Continue may send its body after it" do
    start_slow
    socket = send_only("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    expect(socket.readpartial(1_000)).to eq("HTTP/1.1 100 Continue\r\n\r\n")
    socket.write("abc")
    expect(answer(socket)).to start_with("HTTP/1.1 200 OK").and end_with(" abc")
  end

  it "that waits for 100 Continue and sends nothing then gets 408" do
    start_slow
    socket = send_only("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    expect(answer(socket)).to start_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 408 ")
    expect_worker_unharmed
  end

  it "gets 431 for a head beyond client_max_header_size, and no earlier" do
    start_slow("client_max_header_size 2048\n")
    statuses = [2047, 2048, 2049].map do |size|
      start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
      @slow.exchange("#{start}#{"b" * (size - start.bytesize - 4)}\r\n\r\n").status
    end
    expect(statuses).to eq([200, 200, 431])
  end

  it "gets 413 for a body beyond client_max_body_size, and no earlier" do
    start_slow("client_max_body_size 10\n")
    lengths = [9, 10, 11].map { |size| @slow.exchange(post("x" * size)).status }
    chunks = [9, 10, 11].map do |size|
      @slow.exchange("#{chunked}5\r\nabcde\r\n#{(size - 5).to_s(16)}\r\n#{"x" * (size - 5)}\r\n0\r\n\r\n").status
    end
    expect([lengths, chunks]).to eq([[200, 200, 413]] * 2)
  end

  it "gets 413 for any body when client_max_body_size is 0" do
    start_slow("client_max_body_size 0\n")
    expect(["", "x"].map { |body| @slow.exchange(post(body)).status }).to eq([200, 413])
  end

  context "with rewindable_input false" do
    it "has a body without rewind, and chunks without a length" do
      start_slow("rewindable_input false\n")
      response = @slow.exchange("#{chunked}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
      expect([response["x-length"], response["x-coding"], response["x-rewind"]]).to eq(["nil", '"chunked"', "false"])
      expect(response.body).to end_with(" abcde")
    end

    it "has the length of a body that says it" do
      start_slow("rewindable_input false\n")
      expect(@slow.exchange(post("abc"))["x-length"]).to eq('"3"')
    end

    it "reaches the application before its chunked body is complete" do
      start_slow("rewindable_input false\n")
      socket = send_only("#{chunked.sub("/", "/start")}3\r\nabc\r\n")
      # Nothing more comes before the answer.
      expect(socket.gets("abc")).to start_with("HTTP/1.1 200 OK")
    end

    it "gets 400 when a chunk turns out to be malformed while the application reads" do
      start_slow("rewindable_input false\n")
      expect(@slow.exchange("#{chunked}3\r\nabc\r\nxyz\r\n").status).to eq(400)
      expect_worker_unharmed
    end
  end

  context "with 64 MB" do
    # How much more memory than before the worker has at most while the block runs.
    def growth
      @slow.exchange(post("warm", "/digest"))
      before = highest = pss
      done = false
      watch = Thread.new { highest = [highest, pss].max while !done && sleep(0.005) }
      yield
      done = true
      watch.join
      highest - before
    end

    def pss = File.read("/proc/#{@worker}/smaps_rollup")[/^Pss:\s+(\d+) kB/, 1].to_i * 1024

    [true, false].each do |rewindable|
      it "is uploaded without the memory for it (rewindable_input #{rewindable})" do
        start_slow("rewindable_input #{rewindable}\n")
        body = Random.bytes(1 << 20) * 64
        answer = nil
        grown = growth { answer = @slow.exchange(post(body, "/digest")).body }
        expect(answer).to eq(Digest::SHA256.hexdigest(body))
        expect(grown).to be < (8 << 20)
      end
    end

    %w[/each /file].each do |path|
      it "is downloaded without the memory for it (#{path})" do
        start_slow
        @slow.write("large", "x" * (64 << 20))
        size = nil
        grown = growth { size = @slow.raw(get(path)).bytesize }
        expect([size, grown]).to match([be > (64 << 20), be < (8 << 20)])
      end
    end
  end
end
