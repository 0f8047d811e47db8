# frozen_string_literal: true

require "support/descriptors"
require "support/server"

RSpec.describe "a supervisor's sockets", :server do
  # Where this process listens, what of the supervisor's words is left, and how many sockets a program inherits that the
  # application starts.
  let(:app) { <<~'RUBY' }
    run lambda { |_env|
      variables = ENV.keys & %w[LISTEN_FDS LISTEN_PID LISTEN_FDNAMES UNICORN_FD]
      inherited = `ls -l /proc/self/fd`.scan("socket:").size
      [200, {}, [[*Pitchfork.listener_names, *variables, inherited].join(" ")]]
    }
  RUBY

  around do |example|
    @tcp = TCPServer.new("127.0.0.1", 0)
    @unix = UNIXServer.new(unix)
    example.run
  ensure
    [@tcp, @unix].each(&:close)
  end

  def tcp = "127.0.0.1:#{@tcp.addr[1]}"

  def unix = File.join(Dir.pwd, "supervisors.sock")

  # By systemd's protocol.
  def activate(*sockets, listen: [], environment: {}, **options)
    variables = { "LISTEN_FDS" => sockets.size.to_s, "LISTEN_FDNAMES" => "a:b" }
    start(app, listen: listen, inherited: [sockets, variables.merge(environment)], **options)
  end

  def listening(server, count)
    server.alive_until("listening") { server.addresses.size == count }
    server
  end

  def expect_serving(server, *addresses)
    listening(server, addresses.size)
    addresses.each do |address|
      expect(server.exchange(ServerExamples::GET, address).body).to eq("#{addresses.join(" ")} 0")
    end
  end

  def failure_of(server)
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(server.log.lines.size).to eq(1)
    server.log.chomp
  end

  it "stand in for all addresses when none is configured, and no child takes them for its own" do
    server = activate(@tcp, @unix)
    expect_serving(server, tcp, unix)
    expect(server.messages.first(2)).to match([/\Ainherited addr=#{tcp} fd=\d+\z/, /\Ainherited addr=#{unix} fd=\d+\z/])
  end

  it "are adopted by their addresses when some are configured, and the others bound" do
    server = activate(@unix, @tcp, listen: [tcp, "127.0.0.1:0", unix])
    listening(server, 3)
    expect(server.addresses.values_at(0, 2)).to eq([tcp, unix])
    expect_serving(server, *server.addresses)
    expect(server.messages.grep(/inherited/).size).to eq(2)
  end

  it "are closed with a line in the log when no address is theirs" do
    server = activate(@tcp, listen: ["127.0.0.1:0"])
    listening(server, 1)
    expect(server.messages)
      .to include("closing inherited socket addr=#{tcp} fd=3: no listener is configured for that address")
    expect(server.log).to match(/ERROR -- .*closing inherited/)
    expect(server.children.flat_map { |child| sockets_of(child.pid) }).not_to include(inode_of(@tcp))
  end

  def sockets_of(pid)
    Descriptors.of(pid).values.grep(/socket/)
  end

  def inode_of(socket) = File.readlink("/proc/self/fd/#{socket.fileno}")

  it "of all of IPv6 are those of all of IPv4 too, as systemd makes them of a bare port" do
    any = Socket.new(:INET6, :STREAM)
    any.setsockopt(:IPV6, :V6ONLY, 0)
    any.bind(Addrinfo.tcp("::", 0))
    any.listen(5)
    port = any.local_address.ip_port
    server = activate(any, listen: ["0.0.0.0:#{port}"])
    listening(server, 1)
    expect(server.exchange(ServerExamples::GET, "127.0.0.1:#{port}").body).to eq("[::]:#{port} 0")
    server.stop
  ensure
    any&.close
  end

  it "of one address are its queues" do
    others = Array.new(2) { Socket.new(:INET, :STREAM).tap { |one| one.setsockopt(:SOCKET, :REUSEPORT, true) } }
    others.first.bind(Addrinfo.tcp("127.0.0.1", 0))
    address = "127.0.0.1:#{others.first.local_address.ip_port}"
    others.last.bind(others.first.local_address)
    server = activate(*others, listen: [address])
    # They did not listen yet, which is begun here.
    listening(server, 2)
    expect(server.messages.grep(/listening/).last).to end_with(" (SO_REUSEPORT)")
    bodies = Array.new(20) { server.exchange(ServerExamples::GET, address).body }
    expect(bodies.uniq).to eq(["#{address} 0"])
    server.stop
  ensure
    others&.each(&:close)
  end

  it "are as good as before after a stop, and what waits in them is served by the next server" do
    first = activate(@tcp, @unix)
    expect_serving(first, tcp, unix)
    expect(first.stop.exitstatus).to eq(0)
    waiting = [TCPSocket.new("127.0.0.1", @tcp.addr[1]), UNIXSocket.new(unix)]
    waiting.each { |socket| socket.write(ServerExamples::GET) }
    expect_serving(activate(@tcp, @unix), tcp, unix)
    answers = waiting.map { |socket| Timeout.timeout(Waiting::PATIENCE) { RawResponse.parse(socket.read).body } }
    expect(answers).to all(eq("#{tcp} #{unix} 0"))
  end

  it "are not asked for while a server drains" do
    server = start(<<~RUBY, listen: [], inherited: [[@tcp], { "UNICORN_FD" => "3" }], workers: 2)
      run lambda { |env|
        #{ServerExamples::AT_GATE} if env["PATH_INFO"] == "/wait"
        [200, {}, ["hello"]]
      }
    RUBY
    listening(server, 1)
    busy = Thread.new { server.raw("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n") }
    server.alive_until("a busy worker") { server.workers.any? { |one| one.status.include?("processing: /wait") } }
    server.signal(:QUIT)
    # Once the idle worker has gone, nobody but the busy one could take it.
    server.alive_until("one worker") { server.workers.size == 1 }
    waiting = TCPSocket.new("127.0.0.1", @tcp.addr[1]).tap { |socket| socket.write(ServerExamples::GET) }
    server.open_gate
    expect(RawResponse.parse(busy.value).body).to eq("hello")
    server.wait_for_end
    expect_serving(activate(@tcp), tcp)
    expect(Timeout.timeout(Waiting::PATIENCE) { RawResponse.parse(waiting.read).body }).to eq("#{tcp} 0")
  end

  describe "by UNICORN_FD" do
    def start_with(numbers, sockets: [@tcp, @unix], **options)
      start(app, listen: [], inherited: [sockets, { "UNICORN_FD" => numbers }], **options)
    end

    it "are adopted" do
      expect_serving(start_with("3,4"), tcp, unix)
    end

    it "and by LISTEN_FDS are adopted once" do
      expect_serving(activate(@tcp, @unix, environment: { "UNICORN_FD" => "4,3" }), tcp, unix)
    end

    %w[3,x 3,,4 -3 0].each do |numbers|
      it "stop the start where it makes no sense: #{numbers}" do
        expect(failure_of(start_with(numbers, ready: false)))
          .to eq("pitchfork-rs: environment: UNICORN_FD: got #{numbers.inspect}, " \
                 "wanted numbers of descriptors of at least 3, with commas between")
      end
    end

    it "stop the start where a number is not open" do
      expect(failure_of(start_with("3,999", ready: false)))
        .to eq("pitchfork-rs: environment: UNICORN_FD: descriptor 999 is no open socket, " \
               "wanted a listening stream socket")
    end
  end

  describe "that are none stop the start:" do
    def complaint_about(socket)
      failure_of(activate(socket, ready: false))[/\Apitchfork-rs: environment: LISTEN_FDS: descriptor 3 (.*)\z/, 1]
    ensure
      socket.close
    end

    it "a file" do
      expect(complaint_about(File.open(File::NULL))).to eq("is no open socket, wanted a listening stream socket")
    end

    it "a datagram socket" do
      socket = UDPSocket.new.tap { |one| one.bind("127.0.0.1", 0) }
      expect(complaint_about(socket)).to eq("is no stream socket, wanted a listening stream socket")
    end

    it "a connection" do
      accepted = TCPSocket.open("127.0.0.1", @tcp.addr[1]) { @tcp.accept }
      expect(complaint_about(accepted)).to eq("is a connection, wanted a listening stream socket")
    end

    it "a pair" do
      one, other = UNIXSocket.pair
      expect(complaint_about(one)).to eq("is not bound, wanted a listening stream socket")
    ensure
      other.close
    end

    it "one that is not bound" do
      expect(complaint_about(Socket.new(:INET, :STREAM))).to eq("is not bound, wanted a listening stream socket")
    end
  end

  it "are somebody else's under another pid, which is no reason to keep the variables" do
    server = start(app, inherited: [[], { "LISTEN_PID" => "1", "UNICORN_FD" => "" }])
    expect(server.get.body).to eq("#{server.addresses.first} 0")
    expect(server.messages.grep(/inherited/)).to be_empty
  end

  it "stop the start where their number is none" do
    server = start(app, listen: [], inherited: [[], { "LISTEN_FDS" => "many" }], ready: false)
    expect(failure_of(server)).to eq('pitchfork-rs: environment: LISTEN_FDS: got "many", wanted a number')
  end
end
