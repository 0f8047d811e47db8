# frozen_string_literal: true

require "support/server"

RSpec.describe "listening", :server do
  def free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

  it "begins when the first mold is ready, and not before" do
    port = free_port
    server = start(ServerExamples::SLOW_BOOT, listen: ["127.0.0.1:#{port}", "unix:early.sock"], ready: false)
    server.alive_until("the boot") { server.children.any? { |child| child.status == "booting" } }
    expect { TCPSocket.new("127.0.0.1", port) }.to raise_error(Errno::ECONNREFUSED)
    expect { UNIXSocket.new(server.path("early.sock")) }.to raise_error(Errno::ECONNREFUSED)
    server.open_gate
    server.wait_until_ready
    expect(server.get.body).to eq("hello")
  end

  it "is said once for each address, with the port that 0 has become" do
    server = start(listen: ["127.0.0.1:0", "unix:a.sock"])
    expect(server.messages.grep(/listening/)).to match(
      [/\Alistening on addr=127\.0\.0\.1:[1-9]\d* fd=\d+\z/, /\Alistening on addr=#{server.path("a.sock")} fd=\d+\z/]
    )
  end

  it "serves all addresses" do
    addresses = ["127.0.0.1:0", "127.0.0.2:0", "unix:a.sock"]
    server = start("run ->(env) { [200, {}, [env['REMOTE_ADDR']]] }", listen: addresses)
    expect(server.addresses.size).to eq(3)
    answers = server.addresses.map { |address| server.exchange(ServerExamples::GET, address).body }
    expect(answers).to match([/\A127\.0\.0\./, /\A127\.0\.0\./, "127.0.0.1"])
  end

  it "fails at once on a path that holds something else, and leaves it alone" do
    File.write("precious", "data")
    server = start(listen: File.join(Dir.pwd, "precious"), ready: false)
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(server.log).to match(/\A[^\n]*precious, which is a file but no socket[^\n]*\n\z/)
    expect(File.read("precious")).to eq("data")
  end

  it "replaces a Unix socket that a server has left behind, and leaves its own" do
    2.times do |round|
      server = start("run ->(_env) { [200, {}, ['#{round}']] }", listen: File.join(Dir.pwd, "a.sock"))
      expect(server.exchange(ServerExamples::GET).body).to eq(round.to_s)
      expect(server.log.scan("unlinking existing socket=#{Dir.pwd}/a.sock").size).to eq(round)
      server.stop
      expect(File.socket?("a.sock")).to be(true)
    end
  end

  it "lets everybody connect to a Unix socket, as to a port" do
    server = start(listen: "unix:a.sock")
    expect(File.stat(server.path("a.sock")).mode & 0o777).to eq(0o777)
  end

  it "can begin again on a port right after a server has left it" do
    first = start
    port = first.port
    first.get
    first.stop
    expect(start(listen: "127.0.0.1:#{port}").get.body).to eq("hello")
  end
end
