# frozen_string_literal: true

require "support/descriptors"
require "support/server"

RSpec.describe "log files", :server do
  let(:talking) { <<~'RUBY' }
    run lambda { |env|
      env["rack.logger"].info("app #{env["PATH_INFO"]} pid=#{Process.pid}")
      puts "out #{env["PATH_INFO"]}"
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  # Does what logrotate does, and waits until everybody has seen it.
  def rotate(server, *names, from: "log")
    names.each { |name| File.rename(server.path(name), server.path("#{name}.1")) }
    before = server.read(from).scan("HUP received").size
    server.signal(:HUP)
    server.alive_until("the reopening") { server.read(from).scan("HUP received").size > before }
  end

  # Nothing that the reactor runs writes to standard output.
  def writers(server) = server.children.map(&:pid) - [server.reactor&.pid]

  def open_files(server, name)
    [server.pid, *writers(server)].to_h do |pid|
      [pid, Descriptors.of(pid).values.grep(%r{/#{Regexp.escape(name)}(?:\.1)?\z}).uniq.sort]
    end
  end

  # Where all processes have a file open, once they agree.
  def wait_until_open(server, name, as: name)
    server.alive_until("#{name} open in all processes") do
      open_files(server, name).values.uniq == [[server.path(as)]]
    end
  end

  it "get what goes to standard output at once, in all processes" do
    server = start("puts 'loading'\n#{talking}", config: "logger Logger.new($stdout)\nputs 'reading'", ready: false)
    server.wait_for_log(/worker=0 gen=0 pid=\d+ ready/)
    server.get("/it")
    server.wait_for_log(%r{^out /it$})
    expect(server.log).to include("reading", "loading", "monitor process ready", "app /it")
  end

  it "are what standard output and standard error go to, and HUP reopens them in all processes" do
    server = start(talking, workers: 2, ready: false, config: "stdout_path 'out.log'\nstderr_path 'err.log'")
    wait_until("listening") { server.read("err.log").include?("listening on addr=") }
    server.wait_for_workers(2)
    pids = writers(server)
    port = server.read("err.log")[/addr=127\.0\.0\.1:(\d+)/, 1]
    get = ->(path) { Net::HTTP.get(URI("http://127.0.0.1:#{port}#{path}")) }
    get.call("/one")
    wait_until_open(server, "err.log")
    rotate(server, "out.log", "err.log", from: "err.log")
    %w[out.log err.log].each { |name| wait_until_open(server, name) }
    get.call("/two")
    expect([server.read("out.log.1"), server.read("out.log")]).to eq(["out /one\n", "out /two\n"])
    expect(server.read("err.log.1")).to match(%r{app /one}).and match(/monitor pid=\d+ ready/)
    expect(server.read("err.log")).to match(%r{app /two}).and match(/HUP received, reopened the logs/)
    expect(writers(server)).to match_array(pids)
    expect(server.log).to eq("")
  end

  {
    "that a logger has opened by name" => "logger Logger.new('app.log', progname: '[Pitchfork]')",
    "that was opened for a logger" => <<~RUBY
      file = File.open(File.expand_path("app.log"), "a")
      file.sync = true
      logger Logger.new(file)
    RUBY
  }.each do |which, config|
    it "#{which} are reopened, busy workers doing so after their request" do
      server = start("run ->(env) { #{ServerExamples::AT_GATE} if env['PATH_INFO'] == '/wait'; [200, {}, ['ok']] }",
                     config: config, listen: "unix:a.sock", workers: 2, ready: false)
      wait_until("listening") { server.read("app.log").include?("listening on addr=") }
      server.wait_for_workers(2)
      request = Thread.new { server.raw("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n", server.path("a.sock")) }
      busy = server.alive_until("a busy worker") { server.workers.find { |worker| worker.status.include?("/wait") } }
      rotate(server, "app.log", from: "app.log")
      server.alive_until("all but the busy one to have reopened") do
        open_files(server, "app.log").all? do |pid, files|
          files == [server.path(pid == busy.pid ? "app.log.1" : "app.log")]
        end
      end
      server.open_gate
      request.value
      wait_until_open(server, "app.log")
    end
  end

  it "lose no line while they are rotated under load" do
    server = start("run ->(env) { env['rack.logger'].info('served ' + env['PATH_INFO']); [200, {}, ['ok']] }",
                   config: "logger Logger.new('app.log')", listen: "unix:a.sock", workers: 2, ready: false)
    wait_until("listening") { server.read("app.log").include?("listening on addr=") }
    server.wait_for_workers(2)
    done = false
    clients = Array.new(2) do |client|
      Thread.new do
        (0..).each do |number|
          break number if done

          server.raw("GET /#{client}-#{number} HTTP/1.1\r\nHost: a\r\n\r\n", server.path("a.sock"))
        end
      end
    end
    3.times do |round|
      File.rename(server.path("app.log"), server.path("app.log.#{round}"))
      server.signal(:HUP)
      wait_until("the new file") { server.read("app.log").include?("HUP received") }
    end
    done = true
    counts = clients.map(&:value)
    served = Dir.glob(server.path("app.log*")).flat_map { |file| File.read(file).scan(/served (\S+)/).flatten }
    expected = counts.flat_map.with_index { |count, client| Array.new(count) { |number| "/#{client}-#{number}" } }
    expect(served).to match_array(expected)
  end

  it "that cannot be reopened cost a line, and stay as they are" do
    Dir.mkdir("logs")
    server = start(config: <<~CONFIG, workers: 1)
      stderr_path nil
      stdout_path #{File.expand_path("logs/out.log").inspect}
    CONFIG
    File.rename("logs", "moved")
    server.signal(:HUP)
    server.wait_for_log(/cannot reopen #{Regexp.escape(File.expand_path("logs/out.log"))}: No such file/, count: 3)
    server.wait_for_log(/HUP received/)
    expect(server.get.body).to eq("hello")
    expect(open_files(server, "out.log").values.uniq).to eq([[File.expand_path("moved/out.log")]])
  end

  it "of a logger that cannot be reopened stay as they are, too" do
    Dir.mkdir("logs")
    config = "logger Logger.new(#{File.expand_path("logs/app.log").inspect}, progname: '[Pitchfork]')"
    server = start(config: config, listen: "unix:a.sock", ready: false)
    log = -> { File.read(Dir.glob("{logs,moved}/app.log").first || "/dev/null") }
    wait_until("listening") { log.call.include?("listening on addr=") }
    server.wait_for_workers(1)
    File.rename("logs", "moved")
    server.signal(:HUP)
    wait_until("the lines") { log.call.scan(/ERROR.*cannot reopen .*app\.log: No such file/).size == 3 }
    expect(server.exchange(ServerExamples::GET, server.path("a.sock")).body).to eq("hello")
  end

  it "are reopened by children that were forked before and have not begun yet" do
    gate = "after_worker_fork { |_, _| #{ServerExamples::AT_GATE} }"
    server = start(config: "stdout_path 'out.log'\n#{gate}", ready: false)
    server.wait_for_log(/worker=0 gen=0 pid=\d+ registered/)
    rotate(server, "out.log")
    server.open_gate
    server.wait_for_workers(1)
    wait_until_open(server, "out.log")
  end

  it "cannot be opened: the start fails with a line that says so" do
    # Where not even root can make a file.
    server = start(config: "stderr_path '/proc/err.log'", ready: false)
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(server.log)
      .to eq("pitchfork-rs: config.rb:3: stderr_path: cannot open /proc/err.log (No such file or directory)\n")
  end

  it "are left alone by USR1, which is logged" do
    server = start(config: "stdout_path 'out.log'")
    File.rename(server.path("out.log"), server.path("out.log.1"))
    server.signal(:USR1)
    server.wait_for_log(/INFO .*USR1 received, ignoring it/)
    server.get
    expect(server.read("out.log")).to eq("")
  end
end
