# frozen_string_literal: true

require "open3"
require "rbconfig"
require "socket"
require_relative "../../benchmark/lib/clients/crowd"
require_relative "../../benchmark/lib/clients/load"
require_relative "../../benchmark/lib/common/session"
require_relative "../support/waiting"

# A load that cannot fail proves nothing.
RSpec.describe "benchmark/clients", :in_tmpdir do
  include Waiting

  command = File.expand_path("../../benchmark/clients", __dir__)
  good = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n0 bytes\n"

  # A server that does this with each connection, once something has come.
  def serve(&block)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new do
      loop do
        socket = server.accept
        Thread.new { read(socket) && block.call(socket) }.report_on_exception = false
      end
    end
    (@ends ||= []) << -> { thread.kill && server.close }
    Bench::Address.new("127.0.0.1:#{server.local_address.ip_port}")
  end

  def read(socket) = socket.readpartial(1_000).tap { @requests << socket }

  def reset(socket)
    socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    socket.close
  end

  def load_on(address)
    Clients::Load.during(address, connections: 2, pause: 0.01) { wait_until("requests") { @requests.size > 8 } }
  end

  def crowd_on(address, **counts)
    crowd = Clients::Crowd.new(address, { senders: 0, readers: 0, idle: 0, **counts })
    yield crowd
    crowd.leave.last.map { |one| [one.kind, one.outcome] }.uniq
  ensure
    crowd&.close
  end

  before { @requests = Queue.new }

  after { @ends&.each(&:call) }

  it "counts what is answered, on connections that stay open" do
    tally = load_on(serve { |socket| loop { socket.write(good) && read(socket) } })
    expect(tally).to have_attributes(failed_count: 0, connects: 2, closed_idle: 0)
    expect(tally.ok).to be > 4
  end

  {
    "an error" => [:"status 500", ->(socket) { socket.write(good.sub("200 OK", "500 Oops")) }],
    "more than was announced" => [:"malformed answer", ->(socket) { socket.write("#{good}x") }],
    "no length" => [:"malformed answer", ->(socket) { socket.write("HTTP/1.1 200 OK\r\n\r\n") }],
    "the end of file" => [:"closed without an answer", :close.to_proc],
    "half an answer" => [:"closed without an answer", ->(socket) { socket.write(good[0..-3]) && socket.close }]
  }.each do |what, (reason, answer)|
    it "calls #{what} by its name" do
      tally = load_on(serve(&answer))
      expect(tally.failed.keys.uniq).to eq([[reason, true]])
    end
  end

  it "calls a reset by its name" do
    tally = load_on(serve { |socket| reset(socket) })
    expect(tally.failed.keys).to eq([[:reset, true]])
  end

  it "notes connections that are closed while nothing is asked" do
    tally = load_on(serve { |socket| socket.write(good) && socket.close })
    expect(tally).to have_attributes(failed_count: 0, closed_idle: a_value > 1)
  end

  it "tells the orderly end of an idle connection from a reset" do
    ends = [:close.to_proc, method(:reset)].map do |ending|
      open = Queue.new
      address = serve { |socket| socket.write(good) && (open << socket) }
      crowd_on(address, idle: 4) do |crowd|
        crowd.wait_until_settled(seconds: 10)
        4.times { ending.call(open.pop) }
      end
    end
    expect(ends).to eq([[%i[idle closed]], [%i[idle reset]]])
  end

  it "says in one line what is wrong with what it is asked for" do
    {
      %w[--idle 100000000] => /\Aclients: 100001000 connections want 100001100 descriptors, .* the hard limit is \d+: /,
      %w[--busy --drain] => "clients: invalid argument: --busy goes with none of the others; see --help\n",
      %w[--refork 0] => "clients: invalid argument: --refork 0.0, wants more than 0; see --help\n"
    }.each do |arguments, line|
      printed, status = Open3.capture2e(RbConfig.ruby, command, *arguments)
      expect([printed.lines.size, status.exitstatus]).to eq([1, 1])
      expect(printed).to match(line)
    end
  end

  it "ends all that it has started when it is interrupted" do
    # What it keeps of the server goes with the example.
    tool = Process.spawn({ "TMPDIR" => Dir.pwd }, RbConfig.ruby, command, *%w[--idle 20 --senders 2 --readers 2],
                         out: File::NULL, err: File::NULL, pgroup: true)
    children = -> { File.read("/proc/#{tool}/task/#{tool}/children").split.map(&:to_i) }
    server = wait_until("a server and a load") { children.call.then { |pids| pids.first if pids.size > 2 } }
    Process.kill(:INT, tool)
    expect(Process.wait2(tool).last.exitstatus).to eq(130)
    wait_until("the end of the server") { Bench::Session.members(server).empty? }
    # Whom it has killed without waiting is reaped by somebody else, in his own time.
    wait_until("the end of the load") { group_ended?(tool) }
  end
end
