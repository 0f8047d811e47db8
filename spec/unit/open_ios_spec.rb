# frozen_string_literal: true

require "json"
require "socket"
require "timeout"
require "pitchfork_rs/open_ios"

# What closes IOs does so in a process of its own: RSpec has some open.
RSpec.describe PitchforkRs::OpenIOs, :in_tmpdir do
  # Runs the block in a child, and gives what that returned.
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      # Not an IO that would be closed.
      result = yield
      IO.for_fd(writer.fileno, autoclose: false).syswrite(JSON.generate(result))
      exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException
      IO.for_fd(2, autoclose: false).syswrite("#{e.full_message}\n")
      exit!(1)
    end
    writer.close
    result = Timeout.timeout(20) { reader.read }
    Process.wait(pid)
    JSON.parse(result)
  end

  # What `close_others` would do in a server, except that the pipe of `in_child` must survive it.
  def close_others(ios, spared: [])
    pipes = ObjectSpace.each_object(IO).select { |io| io.instance_of?(IO) }
    ios.close_others([*spared, *pipes])
  end

  it "closes all but what is kept, spared, a standard stream, or borrowed" do
    result = in_child do
      files = Array.new(5) { |number| File.open(number.to_s, "w") }
      wrapped = Struct.new(:to_io).new(files[1])
      ios = described_class.new
      ios.keep(files[0])
      ios.keep(wrapped)
      files[3].autoclose = false
      standard = [$stdin, $stdout, $stderr]
      close_others(ios, spared: [files[2]])
      [files.map(&:closed?), standard.map(&:closed?)]
    end
    expect(result).to eq([[false, false, false, false, true], [false] * 3])
  end

  it "does not mind IOs that were never opened, or whose descriptor is gone" do
    result = in_child do
      IO.allocate
      gone = File.open("gone", "w")
      IO.for_fd(gone.fileno).close
      socket = UNIXSocket.pair.first
      IO.for_fd(socket.fileno).close
      close_others(described_class.new)
      "survived"
    end
    expect(result).to eq("survived")
  end

  it "gives back what it is given, and refuses what is no IO" do
    ios = described_class.new
    expect(ios.keep($stderr)).to equal($stderr)
    expect { ios.keep("text") }.to raise_error(ArgumentError, 'got "text", wanted an IO or what responds to to_io')
  end

  it "keeps nothing alive" do
    ios = described_class.new
    50.times { |number| ios.keep(File.open(number.to_s, "w")) }
    GC.start
    # Not its size, which counts what is gone until the next collection.
    expect(ios.instance_variable_get(:@kept).keys.size).to be < 50
  end

  # A connection that says goodbye when it is closed, and sends what it has when it can.
  let(:polite) do
    Class.new(TCPSocket) do
      def close
        write("goodbye")
        super
      end
    end
  end

  it "lets no peer of a shared connection notice" do
    TCPServer.open("127.0.0.1", 0) do |server|
      client = polite.new("127.0.0.1", server.addr[1])
      peer = server.accept
      client.sync = false
      client.write("unsent ")
      closed = in_child do
        close_others(described_class.new)
        client.closed?
      end
      expect(closed).to be(true)
      expect { peer.read_nonblock(100) }.to raise_error(IO::WaitReadable)
      client.write("sent")
      client.flush
      expect(peer.readpartial(100)).to eq("unsent sent")
      peer.write("answer")
      expect(client.readpartial(100)).to eq("answer")
      peer.close
    ensure
      client&.sync = true
      BasicSocket.instance_method(:close).bind_call(client) if client
    end
  end
end
