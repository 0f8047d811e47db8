# frozen_string_literal: true

require "support/server"

RSpec.describe "listening sockets", :server do
  let(:remote) { "run ->(env) { [200, {}, [env['REMOTE_ADDR']]] }" }

  # A number as in `/proc/net/tcp`.
  def hex(number) = number.to_s(16).upcase.rjust(4, "0")

  it "hand their options down to connections" do
    server = start(<<~'RUBY', listen: [], config: <<~CONFIG)
      run lambda { |env|
        copy = BasicSocket.for_fd(env["rack.hijack"].call.fileno).tap { |socket| socket.autoclose = false }
        value = copy.getsockopt(*env["QUERY_STRING"].split(",").map(&:to_i)).int
        copy.write("HTTP/1.1 200 OK\r\n\r\n#{value}")
        env["rack.hijack_io"].close
      }
    RUBY
      listen "127.0.0.1:0"
      listen "127.0.0.2:0", tcp_nodelay: false, tcp_nopush: true, rcvbuf: 30_000, sndbuf: 40_000
    CONFIG
    server.alive_until("listening") { server.addresses.size == 2 }
    options = { nodelay: "6,1", cork: "6,3", keepalive: "1,9", rcvbuf: "1,8", sndbuf: "1,7" }
    values = server.addresses.map do |address|
      options.transform_values do |name|
        server.exchange("GET /?#{name} HTTP/1.1\r\nHost: a\r\n\r\n", address).body.to_i
      end
    end
    expect(values.first).to include(nodelay: 1, cork: 0, keepalive: 1)
    # The kernel doubles sizes.
    expect(values.last).to eq(nodelay: 0, cork: 1, keepalive: 1, rcvbuf: 60_000, sndbuf: 80_000)
  end

  it "send a whole response although they are corked" do
    server = start(listen: [], config: "listen '127.0.0.1:0', tcp_nopush: true, backlog: 1 << 80, queues_per_worker: 9")
    expect(server.get.body).to eq("hello")
  end

  it "keep silent connections back unless told otherwise" do
    app = "run ->(_env) { [200, {}, ['hello']] }"
    server = start(app, listen: [], config: "listen '127.0.0.1:0', tcp_defer_accept: 30\nclient_header_timeout 60")
    silent = server.connect
    # One worker, which would be waiting for the head of the first client's request otherwise.
    expect(server.get.body).to eq("hello")
    silent.write(ServerExamples::GET)
    expect(Timeout.timeout(Waiting::PATIENCE) { silent.read }).to end_with("hello")
  end

  it "lose no client at a stop whom the kernel has kept back until then" do
    server = start(listen: [], config: "listen '127.0.0.1:0', tcp_defer_accept: 30")
    silent = server.connect
    server.signal(:QUIT)
    server.wait_for_log(/QUIT received/)
    # About a second later: a queue that only looked empty would have been closed by then.
    pair = ":#{hex(server.port)} 0100007F:#{hex(silent.local_address.ip_port)} 01 "
    server.alive_until("its turn") { File.read("/proc/net/tcp").include?(pair) }
    silent.write(ServerExamples::GET)
    expect(Timeout.timeout(Waiting::PATIENCE) { silent.read }).to end_with("hello")
    expect(server.wait_for_end.exitstatus).to eq(0)
  end

  it "of Unix have the permissions that the umask leaves, whatever the process's own is" do
    before = File.umask(0o077)
    server = start(listen: [], config: "listen 'unix:a.sock', umask: 0o117\nlisten 'unix:b.sock'")
    server.alive_until("listening") { server.addresses.size == 2 }
    modes = %w[a.sock b.sock].map { |name| File.stat(server.path(name)).mode & 0o777 }
    expect(modes).to eq([0o660, 0o777])
  ensure
    File.umask(before)
  end

  it "take IPv6 clients" do
    server = start(remote, listen: ["[::1]:0"])
    expect(server.addresses.first).to start_with("[::1]:")
    expect(server.exchange(ServerExamples::GET).body).to eq("::1")
  end

  it "take IPv4 clients on an IPv6 address, by their IPv4 addresses" do
    server = start(remote, listen: [], config: "listen '[::]:0', ipv6only: false")
    expect(server.get.body).to eq("127.0.0.1")
    expect(server.exchange(ServerExamples::GET, "[::1]:#{server.port}").body).to eq("::1")
  end

  it "leave IPv4 clients alone with ipv6only, so that another can have them" do
    server = start(remote, listen: [], config: "listen '[::]:0', ipv6only: true")
    expect { server.connect("127.0.0.1:#{server.port}") }.to raise_error(Errno::ECONNREFUSED)
    other = start(listen: "127.0.0.1:#{server.port}")
    expect([other.get.body, server.exchange(ServerExamples::GET, "[::1]:#{server.port}").body]).to eq(%w[hello ::1])
  end

  it "share their port with those of another server if both say so" do
    first = start("run ->(_env) { [200, {}, ['first']] }", listen: [], config: "listen '127.0.0.1:0', reuseport: true")
    config = "listen '127.0.0.1:#{first.port}', reuseport: true, tries: 0"
    second = start("run ->(_env) { [200, {}, ['second']] }", listen: [], config: config)
    wait_until("answers of both") { Array.new(20) { first.get.body }.uniq.size == 2 }
    first.stop
    expect(Array.new(20) { second.get.body }.uniq).to eq(["second"])
  end

  describe "as Ruby has them" do
    let(:app) { <<~'RUBY' }
      run lambda { |_env|
        listeners = Pitchfork::HttpServer::LISTENERS
        seen = listeners.map { |io| [io.class, io.autoclose?, io.close_on_exec?].join(" ") }
        [200, {}, [[Pitchfork.listener_names, seen, listeners.size, listeners.to_a.size, listeners.empty?].inspect]]
      }
    RUBY

    it "are in each worker, and have names" do
      server = start(app, listen: ["127.0.0.1:0", "unix:a.sock", "[::1]:0"])
      names, seen, *sizes = eval(server.get.body) # rubocop:disable Security/Eval
      expect(names).to eq(server.addresses)
      expect(seen).to eq(["TCPServer false true", "UNIXServer false true", "TCPServer false true"])
      expect(sizes).to eq([3, 3, false])
    end

    it "are one for each queue, under one name" do
      server = start(app, listen: [], config: "listen '127.0.0.1:0', queues: 3")
      names, seen, = eval(server.get.body) # rubocop:disable Security/Eval
      expect([names, seen.size]).to eq([server.addresses.uniq, 3])
    end

    it "tell how many connections wait in their queues" do
      server = start(<<~RUBY)
        run lambda { |env|
          #{ServerExamples::AT_GATE} if env["PATH_INFO"] == "/wait"
          # tcpi_unacked, which is the length of the queue where nothing was ever sent
          waiting = Pitchfork::HttpServer::LISTENERS.sum { |io| io.getsockopt(6, 11).data.unpack1("@24L") }
          [200, {}, [waiting.to_s]]
        }
      RUBY
      first = server.connect.tap { |socket| socket.write("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }
      server.alive_until("a busy worker") { server.workers.any? { |one| one.status.include?("processing: /wait") } }
      others = Array.new(3) { server.connect.tap { |socket| socket.write(ServerExamples::GET) } }
      queue = ":#{hex(server.port)} 00000000:0000 0A 00000000:00000003"
      wait_until("a queue") { File.read("/proc/net/tcp").include?(queue) }
      server.open_gate
      expect(RawResponse.parse(first.read).body).to eq("3")
      others.each(&:read)
    end

    it "harm nobody when they are closed, accepted from nobody but the server" do
      server = start(<<~RUBY)
        run lambda { |_env|
          Pitchfork::HttpServer::LISTENERS.each(&:close)
          GC.start
          [200, {}, ["hello"]]
        }
      RUBY
      expect(Array.new(3) { server.get.body }).to eq(["hello"] * 3)
    end
  end

  it "are gone in a program whose server has stopped, for whoever still has them too" do
    File.write("program.rb", <<~'RUBY')
      require "pitchfork_rs"
      listeners = PitchforkRs::HttpServer::LISTENERS
      p listeners.empty?
      options = { listeners: ["127.0.0.1:0"], logger: Logger.new(nil), config_file: nil }
      server = PitchforkRs::HttpServer.new(->(_env) {}, options)
      p listeners.empty?
      server.start
      kept = listeners.first
      p [listeners.size, kept.closed?, PitchforkRs.listener_names.first == "127.0.0.1:#{kept.addr[1]}"]
      Process.kill("QUIT", Process.pid)
      server.join
      p [listeners.size, kept.closed?, PitchforkRs.listener_names]
    RUBY
    output = IO.popen([RbConfig.ruby, "-I#{File.expand_path("../../lib", __dir__)}", "program.rb"], &:read)
    expect(output.lines(chomp: true)).to eq(["true", "true", "[1, false, true]", "[0, true, []]"])
  end
end
