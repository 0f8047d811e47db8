# frozen_string_literal: true

require "support/server"

RSpec.describe "the processes", :server do
  # The names of log lines, without what differs from run to run.
  def anonymous(messages)
    messages.map { |message| message.gsub(/pid[= ]\d+/, "pid=P").sub(/addr=\S+ fd=\d+/, "addr=A fd=N") }
  end

  describe "titles" do
    it "tell the role and the state of each process" do
      server = start(workers: 2)
      expect(server.monitor_title).to eq("pitchfork-rs monitor - -c config.rb config.ru")
      expect(server.children.map(&:title)).to contain_exactly(
        "pitchfork-rs (gen:0) mold - ready", "pitchfork-rs (gen:0) worker[0] - requests: 0, waiting",
        "pitchfork-rs (gen:0) worker[1] - requests: 0, waiting"
      )
    end

    it "tell what a worker is busy with" do
      server = start("run ->(_env) { #{ServerExamples::AT_GATE}; [200, {}, []] }")
      request = Thread.new { server.get("/busy?with=what", "X-Request-Id" => "abc-1") }
      wait_until("the title") { server.worker.status == "requests: 0, processing: /busy, request_id: abc-1" }
      server.open_gate
      request.join
      wait_until("the title") { server.worker.status == "requests: 1, waiting" }
    end

    it "are cut where the memory for them ends, and leave nothing behind" do
      server = start("run ->(_env) { #{ServerExamples::AT_GATE}; [200, {}, []] }")
      path = "/#{"long/" * 1_500}"
      request = Thread.new { server.get(path) }
      wait_until("the title") { server.worker.status.start_with?("requests: 0, processing: /long/long/") }
      status = server.worker.status
      expect("requests: 0, processing: #{path}").to start_with(status)
      expect(status.size).to be < path.size
      server.open_gate
      request.join
      wait_until("the title") { server.worker.status == "requests: 1, waiting" }
    end

    it "that the application sets are overwritten with the next request" do
      server = start("run ->(_env) { Process.setproctitle('mine ' + 'x' * 500); [200, {}, []] }")
      server.get
      wait_until("the title") { server.worker&.status == "requests: 1, waiting" }
    end

    it "tell that a mold is booting" do
      server = start(ServerExamples::SLOW_BOOT, ready: false)
      server.alive_until("the title") { server.children.map(&:title) == ["pitchfork-rs (gen:0) mold - booting"] }
      server.open_gate
      server.wait_until_ready
    end
  end

  it "are all children of the monitor, after any number of reforks" do
    server = start(workers: 2)
    (1..3).each do |generation|
      server.signal(:USR2)
      server.wait_for_workers(2, generation: generation)
      server.alive_until("one mold") { server.children.size == 3 && server.mold.generation == generation }
    end
    expect(server.children.map(&:pid)).to match_array(server.processes - [server.pid])
  end

  it "are asked for once each, also while somebody else's process waits to be reaped" do
    server = start(workers: 16, config: "after_monitor_ready { |_| Process.spawn('true') }")
    server.wait_for_log(/reaped unknown subprocess/)
    expect(server.log.scan(/spawning\.\.\./).size).to eq(16)
  end

  it "lead groups of their own, unless setpgid is false" do
    server = start(workers: 2)
    expect(server.children.map { |child| Process.getpgid(child.pid) }).to eq(server.children.map(&:pid))
    server = start(workers: 2, config: "setpgid false")
    expect(server.children.map { |child| Process.getpgid(child.pid) }).to eq([server.pid] * 3)
  end

  it "work below PID 1, which reaps strangers" do
    namespace = %w[unshare --user --map-root-user --pid --fork --kill-child --mount-proc]
    skip "this system does not let us make a PID namespace" unless system(*namespace, "true", err: File::NULL)

    server = start(<<~'RUBY', workers: 2, wrapper: namespace)
      run ->(_env) { system("(exec true) &"); [200, {}, [Process.ppid.to_s]] }
    RUBY
    expect(server.get.body).to eq("1")
    server.wait_for_log(/reaped unknown subprocess/)
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    expect(server.get.body).to eq("1")
    expect(server.stop.exitstatus).to eq(0)
  end

  it "run at_exit and END blocks of the configuration and of the application once in each that has them" do
    server = start(<<~RUBY, config: "at_exit { #{noting("config", "Process.pid")} }")
      END { #{noting("app", "Process.pid")} }
      run ->(_env) { [200, {}, []] }
    RUBY
    children = server.children.map { |child| child.pid.to_s }
    server.stop
    expect(server.lines("config")).to match_array([server.pid.to_s, *children])
    expect(server.lines("app")).to match_array(children)
  end

  it "run at_exit blocks exactly once each, and middle processes never" do
    server = start("at_exit { #{noting("at_exit", "Process.pid")} }\n#{ServerExamples::HELLO}", workers: 2)
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    expect(server.stop.exitstatus).to eq(0)
    registered = server.log.scan(/pid=(\d+) registered/).flatten
    expect(registered.size).to eq(6)
    expect(server.lines("at_exit")).to match_array(registered)
  end

  it "load the application in the mold, and never in the monitor" do
    server = start(<<~RUBY, config: <<~CONFIG)
      LOADED = true
      run ->(_env) { [200, {}, [Object.const_defined?(:LOADED).to_s]] }
    RUBY
      after_worker_exit { |_, _, _| #{noting("exits", "[Process.pid, Object.const_defined?(:LOADED)].join(' ')")} }
    CONFIG
    expect(server.get.body).to eq("true")
    server.stop
    expect(server.lines("exits")).to eq(["#{server.pid} false"] * 2)
  end

  describe "log lines" do
    it "tell of a boot and of a stop, in order" do
      server = start
      expect(server.stop.exitstatus).to eq(0)
      lines = anonymous(server.messages)
      expect(lines).to match_array(boot_lines + stop_lines)
      [["mold gen=0 pid=P spawned", "mold gen=0 pid=P ready", "listening on addr=A fd=N", "worker=0 gen=0 spawning...",
        "worker=0 gen=0 pid=P spawned", "worker=0 gen=0 pid=P ready", "TERM received, starting graceful shutdown",
        "worker=0 gen=0 pid=P exiting", "worker=0 gen=0 pid=P reaped (#<Process::Status: pid=P exit 0>)",
        "monitor complete status=0"],
       ["mold gen=0 pid=P registered", "mold gen=0 pid=P ready", "monitor pid=P ready", "monitor process ready",
        "TERM received, starting graceful shutdown", "mold gen=0 pid=P reaped (#<Process::Status: pid=P exit 0>)",
        "monitor complete status=0"],
       ["worker=0 gen=0 spawning...", "worker=0 gen=0 pid=P registered",
        "worker=0 gen=0 pid=P exiting"]].each do |order|
        expect(lines & order).to eq(order)
      end
    end

    def boot_lines
      ["mold gen=0 pid=P registered", "mold gen=0 pid=P spawned", "mold gen=0 pid=P ready", "listening on addr=A fd=N",
       "worker=0 gen=0 spawning...", "monitor pid=P ready", "monitor process ready", "worker=0 gen=0 pid=P registered",
       "worker=0 gen=0 pid=P spawned", "worker=0 gen=0 pid=P ready"]
    end

    def stop_lines
      ["TERM received, starting graceful shutdown", "worker=0 gen=0 pid=P exiting",
       "mold gen=0 pid=P reaped (#<Process::Status: pid=P exit 0>)",
       "worker=0 gen=0 pid=P reaped (#<Process::Status: pid=P exit 0>)", "monitor complete status=0"]
    end

    it "tell of a refork, in order" do
      server = start
      before = server.messages.size
      server.signal(:USR2)
      server.wait_for_workers(1, generation: 1)
      server.wait_for_log(/mold gen=0 pid=\d+ reaped/)
      lines = anonymous(server.messages.drop(before))
      [["mold gen=1 pid=P registered", "mold gen=1 pid=P ready", "Sent SIGTERM to worker=0 gen=0 pid=P",
        "worker=0 gen=0 pid=P exiting", "worker=0 gen=0 pid=P reaped (#<Process::Status: pid=P exit 0>)",
        "worker=0 gen=1 spawning...", "worker=0 gen=1 pid=P ready"],
       ["mold gen=1 pid=P spawned", "mold gen=1 pid=P ready"],
       ["worker=0 gen=1 pid=P spawned", "worker=0 gen=1 pid=P ready"],
       ["worker=0 gen=1 spawning...", "worker=0 gen=1 pid=P registered", "Terminating old mold gen=0 pid=P",
        "mold gen=0 pid=P reaped (#<Process::Status: pid=P exit 0>)"]].each do |order|
        expect(lines & order).to eq(order)
      end
    end

    it "have the operator's own format and level" do
      server = start(ready: false, config: <<~CONFIG)
        DEFAULTS[:logger].progname = "[Mine]"
        DEFAULTS[:logger].level = Logger::ERROR
      CONFIG
      server.alive_until("a worker") { server.idle_workers.size == 1 }
      server.signal(:KILL, to: server.worker.pid)
      server.wait_for_log(/reaped/)
      expect(server.log).to match(/\AE, \[.*\] ERROR -- \[Mine\]: worker=0 gen=0 pid=\d+ reaped \(.*SIGKILL.*>\)\n\z/)
    end
  end
end
