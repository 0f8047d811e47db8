# frozen_string_literal: true

require "support/server"

RSpec.describe "an address that is in use", :server do
  def address_of(socket) = "127.0.0.1:#{socket.addr[1]}"

  around { |example| TCPServer.open("127.0.0.1", 0) { |taken| (@taken = taken) && example.run } }

  it "is tried again as often as its options say, and then fails with status 1" do
    address = address_of(@taken)
    server = start(listen: [], config: "listen '#{address}', tries: 2, delay: 0.05", ready: false)
    expect(server.wait_for_end.exitstatus).to eq(1)
    failed = "adding listener failed addr=#{address} (in use)"
    expect(server.messages).to eq(
      [failed, "retrying in 0.05 seconds (1 tries left)", failed,
       "retrying in 0.05 seconds (0 tries left)", failed,
       "pitchfork-rs: config.rb:2: listen: Address already in use - bind(#{address})"]
    )
    expect(server.log.scan(/ERROR -- /).size).to eq(5)
    expect(server.processes).to be_empty
  end

  it "is tried five times, half a second apart, by default" do
    server = start(listen: address_of(@taken), ready: false)
    server.wait_for_log(/retrying in 0\.5 seconds \(4 tries left\)/)
    @taken.close
    server.wait_until_ready
    expect(server.get.body).to eq("hello")
  end

  it "is tried for ever if the number is negative" do
    server = start(listen: [], config: "listen '#{address_of(@taken)}', tries: -1, delay: 0.02", ready: false)
    server.wait_for_log(/retrying in 0\.02 seconds \(infinite tries left\)/, count: 8)
    @taken.close
    server.alive_until("listening") { server.addresses.any? }
    expect(server.get.body).to eq("hello")
  end

  it "is a Unix socket's path as well, if somebody listens there, who is left alone" do
    path = File.join(Dir.pwd, "taken.sock")
    UNIXServer.open(path) do |taken|
      server = start(listen: [], config: "listen '#{path}', tries: 1, delay: 0", ready: false)
      expect(server.wait_for_end.exitstatus).to eq(1)
      expect(server.messages.first).to eq("adding listener failed addr=#{path} (in use)")
      expect(server.messages.last).to eq("pitchfork-rs: config.rb:2: listen: Address already in use - bind(#{path})")
      expect(UNIXSocket.open(path) { taken.accept_nonblock.class }).to eq(UNIXSocket)
    end
  end

  %i[INT TERM QUIT].each do |name|
    it "is not waited for after #{name}: nothing is left of the server, nor of its other addresses" do
      config = "listen '127.0.0.1:0'\nlisten '#{address_of(@taken)}', tries: -1, delay: 60"
      server = start(listen: [], config: config, ready: false)
      server.wait_for_log(/retrying in 60 seconds/)
      server.signal(name)
      expect(server.wait_for_end(seconds: 5).exitstatus).to eq(0)
      expect(server.messages.drop(2))
        .to match([/\A#{name} received, starting (immediate|graceful) shutdown\z/, "monitor complete status=0"])
      expect(server.processes).to be_empty
    end
  end

  it "is not the only trouble: a socket's directory that is missing is named, and what to do" do
    server = start(ready: false, listen: ["unix:tmp/sockets/app.sock"])
    expect(server.wait_for_end.exitstatus).to eq(1)
    path = server.path("tmp/sockets/app.sock")
    expect(server.messages).to eq(["pitchfork-rs: config.rb:2: listen: No such file or directory - bind(#{path}): " \
                                   "make the directory #{File.dirname(path)} first"])
  end

  it "fails an embedding program's start, which has everything as before then" do
    File.write("program.rb", <<~RUBY)
      require "pitchfork_rs"
      trap("TERM") { puts "the program's own" }
      config = { listeners: ["127.0.0.1:0", "#{address_of(@taken)}"], logger: Logger.new(nil), config_file: nil }
      File.write("c.rb", "listen '#{address_of(@taken)}', tries: 0")
      server = PitchforkRs::HttpServer.new(->(env) {}, config.merge(config_file: "c.rb"))
      begin
        server.start
      rescue PitchforkRs::BootFailure => e
        puts e.message
      end
      Process.kill("TERM", Process.pid)
      puts PitchforkRs.listener_names.inspect
      puts Dir.children("/proc/self/fd").count { |fd| File.readlink("/proc/self/fd/\#{fd}").start_with?("socket:") rescue false }
    RUBY
    output = IO.popen([RbConfig.ruby, "-I#{File.expand_path("../../lib", __dir__)}", "program.rb"], &:read)
    expect(output.lines(chomp: true))
      .to eq(["options: listen: Address already in use - bind(#{address_of(@taken)})", "the program's own", "[]", "0"])
  end
end
