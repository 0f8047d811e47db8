# frozen_string_literal: true

require "time"
require "support/descriptors"
require "support/reactor"
require "support/server"

RSpec.describe "the reactor", :server do
  include ReactorExamples

  # How many descriptors each process of a server has open, once the worker has let go of its last connection.
  def amounts(server)
    look = lambda do
      server.children.to_h { |child| [child.title[/mold|worker|reactor/], Descriptors.of(child.pid).size] }
            .merge("monitor" => Descriptors.of(server.pid).size)
    end
    wait_until("rest") { look.call.then { |seen| seen if server.worker&.idle? && seen == look.call } }
  end

  # One of the masks of signals in `/proc/PID/status`, as names.
  def signals(pid, mask)
    bits = File.read("/proc/#{pid}/status")[/^#{mask}:\s*(\h+)/, 1].to_i(16)
    (1..31).select { |number| bits[number - 1] == 1 }.map { |number| Signal.signame(number) }
  end

  def time_of(server, pattern) = Time.parse(server.log[/\[(\S+) #\d+\][^\n]*#{pattern}/, 1])

  it "is not there until it is wanted, and then once" do
    server = start(ReactorExamples::WANTING, workers: 2)
    expect(server.reactor).to be_nil
    expect(server.log).not_to include("reactor")
    8.times { server.get("/want") }
    pid = wait_for_reactor(server)
    expect(server.reactor.pid).to eq(pid)
    8.times { server.get("/want") }
    expect(server.children.size).to eq(4)
    server.stop
    expect(server.messages.grep(/reactor/)).to match(
      ["reactor pid=#{pid} ready", a_string_matching(/\Areactor pid=#{pid} reaped \(#<Process::Status: .* exit 0>\)\z/)]
    )
  end

  it "is nothing that the application or its hooks hear of, but for its counts" do
    server = start_with_reactor(<<~RUBY, config: <<~CONFIG)
      info = Pitchfork::Info
      wanting = Rack::Builder.new { #{ReactorExamples::WANTING} }.to_app
      run lambda { |env|
        next wanting.call(env) if env["PATH_INFO"] == "/want"
        [200, {}, [[info.workers_count, info.live_workers_count, info.connections, info.connections.frozen?].inspect]]
      }
    RUBY
      after_worker_exit { |_, child, _| #{noting("ends", "child.to_log")} }
      before_fork { |_| #{noting("forks", "Process.pid")} }
    CONFIG
    counts = { idle: 0, reading: 0, ready: 0, writing: 0, handed_over: 0, refused: 0, closed_by_deadline: 0 }
    expect(server.get.body).to eq([1, 1, counts, true].inspect)
    server.signal(:KILL, to: server.reactor.pid)
    wait_for_reactor(server, count: 2)
    server.stop
    expect(server.lines("ends")).to contain_exactly(/\Amold gen=0/, /\Aworker=0 gen=0/)
    expect(server.lines("forks").size).to eq(1)
  end

  it "runs no at_exit and no END block" do
    server = start_with_reactor(config: <<~CONFIG)
      at_exit { #{noting("exits", "Process.pid")} }
      END { #{noting("exits", "Process.pid")} }
    CONFIG
    others = [server.pid, *server.children.reject { |child| child == server.reactor }.map(&:pid)]
    expect(others.size).to eq(3)
    server.stop
    expect(server.lines("exits").tally).to eq(others.to_h { |pid| [pid.to_s, 2] })
  end

  it "is back within a second when it is killed, and costs nobody else anything" do
    server = start_with_reactor
    others = server.children.map(&:pid) - [server.reactor.pid]
    (2..4).each do |count|
      pid = server.reactor.pid
      server.signal(:KILL, to: pid)
      successor = wait_for_reactor(server, count: count)
      away = time_of(server, "reactor pid=#{successor} ready") - time_of(server, "reactor pid=#{pid} reaped")
      expect(away).to be < 1
      expect(server.log).to match(/ERROR .*reactor pid=#{pid} reaped \(#<Process::Status: pid #{pid} SIGKILL/)
    end
    expect(server.get.body).to eq(server.worker.pid.to_s)
    expect(server.children.map(&:pid) - [server.reactor.pid]).to match_array(others)
  end

  it "is killed and replaced when it hangs, which no hook hears of, and not as long as it gives signs of life" do
    other = start_with_reactor(config: "timeout 3, cleanup: 2")
    sound = other.reactor
    server = start_with_reactor(config: <<~CONFIG)
      timeout 3, cleanup: 2
      timeout_signal { |pid| #{noting("heard", "pid")}; :KILL }
      after_worker_hard_timeout { |_, child| #{noting("heard", "child.to_log")} }
    CONFIG
    pid = server.reactor.pid
    server.signal(:STOP, to: pid)
    expect(wait_for_reactor(server, count: 2)).not_to eq(pid)
    expect(server.messages).to include("reactor pid=#{pid} timed out, killing")
    expect(server.lines("heard")).to be_empty
    expect(other.reactor).to eq(sound)
  end

  it "heeds no signal, and has no handler of the configuration's" do
    server = start_with_reactor(config: "trap('WINCH') { File.write('winch', '') }")
    pid = server.reactor.pid
    # It looks whether the monitor is gone.
    expect(signals(pid, "SigCgt")).to eq(["TERM"])
    expect(signals(pid, "SigIgn")).to include("HUP", "INT", "QUIT", "USR1", "USR2", "TTIN", "TTOU", "PIPE")
    %i[HUP INT QUIT USR1 USR2 TERM TTIN TTOU WINCH].each { |name| server.signal(name, to: pid) }
    expect(server.stop.exitstatus).to eq(0)
    expect(server.messages).to include(/reactor pid=#{pid} reaped \(.* exit 0>\)/)
    expect(File.exist?(server.path("winch"))).to be(false)
  end

  it "is left alone by reforks, and by a boot in between" do
    server = start_with_reactor
    pid = server.reactor.pid
    server.signal(:USR2)
    server.wait_for_workers(1, generation: 1)
    server.alive_until("one mold") { server.children.size == 3 && server.mold&.generation == 1 }
    server.get("/unsafe")
    server.signal(:KILL, to: server.mold.pid)
    server.wait_for_log(/mold gen=0 pid=\d+ ready/, count: 2)
    server.alive_until("the next worker") { server.idle_workers.map(&:generation) == [0] && server.children.size == 3 }
    expect(server.reactor.pid).to eq(pid)
  end

  describe "at a stop" do
    %i[QUIT TERM INT].each do |name|
      it "by #{name} ends, and with it everybody" do
        server = start_with_reactor(workers: 2)
        expect(server.stop(name).exitstatus).to eq(0)
        expect(server.processes).to be_empty
        expect(server.messages.grep(/reaped/).last).to match(/\Areactor pid=/) unless name == :INT
      end
    end

    it "by a terminal's interrupt ends with the others" do
      server = start_with_reactor(config: "setpgid false")
      Process.kill(:INT, -server.pid)
      expect(server.wait_for_end.exitstatus).to eq(0)
      expect(server.messages).to include(/reactor pid=\d+ reaped \(.* exit 0>\)/)
    end

    it "is replaced if it is killed while somebody else is at work" do
      server = start_with_reactor(<<~RUBY)
        wanting = Rack::Builder.new { #{ReactorExamples::WANTING} }.to_app
        run lambda { |env|
          sleep 0.01 until env["PATH_INFO"] != "/wait" || File.exist?("go")
          wanting.call(env)
        }
      RUBY
      client = Thread.new { server.get("/wait") }
      wait_until("the request") { !server.worker.idle? }
      server.signal(:QUIT)
      server.wait_for_log(/starting graceful shutdown/)
      server.signal(:KILL, to: server.reactor.pid)
      wait_for_reactor(server, count: 2)
      server.write("go", "")
      expect(client.value.code).to eq("200")
      expect(server.wait_for_end.exitstatus).to eq(0)
      expect(server.messages.grep(/reaped/).last).to match(/\Areactor pid=.* exit 0>/)
    end

    it "does not keep the server when it hangs" do
      server = start_with_reactor(config: "timeout 3, cleanup: 2")
      server.signal(:STOP, to: server.reactor.pid)
      expect(server.stop(:QUIT).exitstatus).to eq(0)
      expect(server.messages).to include(/reactor pid=\d+ timed out, killing/)
    end
  end

  describe "whose monitor is killed" do
    it "ends" do
      server = start_with_reactor
      pid = server.reactor.pid
      server.signal(:KILL)
      # Sooner than it would have to.
      wait_until("its end", seconds: 2) { !server.running?(pid) }
    end

    it "ends though it was stopped, or hangs" do
      server = start_with_reactor
      pid = server.reactor.pid
      server.signal(:STOP, to: pid)
      server.signal(:KILL)
      server.signal(:CONT, to: pid)
      wait_until("its end", seconds: 8) { !server.running?(pid) }
    end
  end

  describe "descriptors" do
    it "are its channel, its ends of the queues, and a way to say why it ends" do
      server = start_with_reactor(config: "KEPT = [File.open('config.rb'), *IO.pipe]")
      open = Descriptors.of(server.reactor.pid)
      expect(open.values_at(0, 1, 2)).to eq([File::NULL, File::NULL, server.path("log")])
      listener = server.log[/listening on addr=\S+ fd=(\d+)/, 1]
      expect(open.values).not_to include(Descriptors.of(server.pid).fetch(listener.to_i), server.path("config.rb"))
      expect(open.values.grep(/\Asocket:/).size).to eq(3)
      # What is left wakes Ruby's own threads.
      expect(open.values.grep_v(/\Asocket:/).drop(3)).to all(start_with("anon_inode:").or(start_with("pipe:")))
    end

    it "are as many after reactors have come and gone as before, in every process" do
      server = start_with_reactor
      before = amounts(server)
      expect(before.keys).to match_array(%w[monitor mold worker reactor])
      (2..4).each do |count|
        server.signal(:KILL, to: server.reactor.pid)
        wait_for_reactor(server, count: count)
      end
      expect(amounts(server)).to eq(before)
    end

    it "of its own are not in a mold that is booted later, nor in its workers" do
      server = start_with_reactor
      before = amounts(server)
      server.get("/unsafe")
      server.signal(:KILL, to: server.mold.pid)
      server.wait_for_log(/mold gen=0 pid=\d+ ready/, count: 2)
      server.alive_until("the next worker") { server.idle_workers.size == 1 && server.children.size == 3 }
      server.wait_for_log(/worker=0 gen=0 pid=\d+ ready/, count: 2)
      expect(amounts(server)).to eq(before)
    end
  end

  it "writes to the new file when the logs are reopened" do
    server = start_with_reactor(config: "stderr_path 'errors'", log: "errors")
    File.rename(server.path("errors"), server.path("errors.1"))
    server.signal(:HUP)
    wait_until("the new file") { Descriptors.of(server.reactor.pid)[2] == server.path("errors") }
  end

  describe "whose fork fails" do
    # A library whose callback raises as long as a file is there.
    def callback(before: "", after: "")
      <<~CONFIG
        Process.singleton_class.prepend(Module.new do
          define_method(:_fork) { #{before}; super().tap { |pid| #{after} } }
        end)
      CONFIG
    end

    it "in the monitor is tried again, and costs nobody else anything" do
      server = start(ReactorExamples::WANTING, config: callback(before: "raise 'no room' if File.exist?('broken')"))
      server.write("broken", "")
      server.get("/want")
      server.wait_for_log(/cannot fork a reactor: no room \(RuntimeError\)/, count: 3)
      expect(server.get.body).to eq(server.worker.pid.to_s)
      File.unlink(server.path("broken"))
      wait_for_reactor(server)
    end

    it "in the new process ends that, which does not go on as the monitor" do
      raising = callback(after: "raise 'no luck' if pid.zero? && File.exist?('broken')")
      server = start(ReactorExamples::WANTING, config: raising)
      server.write("broken", "")
      server.get("/want")
      server.wait_for_log(/reactor pid=\d+ reaped \(.* exit 1>\)/, count: 2)
      expect(server.log).to include("cannot go on after a fork: no luck")
      File.unlink(server.path("broken"))
      wait_for_reactor(server)
    end
  end
end
