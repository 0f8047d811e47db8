# frozen_string_literal: true

require "support/server"

RSpec.describe "the service", :server do
  # A hook that notes its name, its process and what it is given.
  def noting_hook(name, more = "")
    note = noting("notes", "'#{name} ' + [Process.pid, service.to_log].join(' ')")
    "#{name} { |server, service| #{note}\n#{more}\n}\n"
  end

  def service(server) = server.children.find { |child| child.title.match?(/ service - ready\z/) }

  def wait_for_service(server, generation: 0)
    server.alive_until("the service of generation #{generation}") do
      service(server)&.then { |found| found.generation == generation && found }
    end
  end

  it "is a process that serves nothing, with hooks and log lines of its own" do
    server = start(config: noting_hook("before_service_worker_ready") + noting_hook("before_service_worker_exit"))
    pid = wait_for_service(server).pid
    name = "service gen=0 pid=#{pid}"
    expect(service(server).title).to start_with("pitchfork-rs (gen:0) service - ready")
    expect(server.get.body).to eq("hello")
    expect(server.stop.exitstatus).to eq(0)
    expect(server.lines("notes")).to eq(["before_service_worker_ready #{pid} #{name}",
                                         "before_service_worker_exit #{pid} #{name}"])
    expect(server.messages).to include("service gen=0 spawning...", "#{name} spawned", "#{name} ready",
                                       "#{name} exiting", a_string_matching(/\A#{name} reaped \(.*exit 0>\)\z/))
  end

  it "is not there without its first hook" do
    server = start(config: noting_hook("before_service_worker_exit"))
    server.get
    expect(server.children.map(&:title).grep(/service/)).to be_empty
    expect(server.log).not_to include("service")
  end

  it "is described by the object that the hooks and after_worker_exit get" do
    server = start(config: <<~'CONFIG')
      tell = ->(it) { [it.nr, it.generation, it.service?, it.mold?, it.worker?, it.ready?, it.requests_count].inspect }
      before_service_worker_ready { |_, service| File.write("ready", tell[service]) }
      after_worker_exit { |_, child, status| File.write("exit", tell[child]) if child.service? }
    CONFIG
    wait_for_service(server)
    server.stop
    expect([server.read("ready"), server.read("exit")])
      .to eq(["[nil, 0, true, false, false, false, 0]", "[nil, 0, true, false, false, true, 0]"])
  end

  it "runs the threads that its hook starts" do
    server = start(config: <<~CONFIG)
      before_service_worker_ready do |_, _|
        Thread.new { File.open("gate", "r+", &:gets); File.write("beat", Process.pid.to_s) }
      end
    CONFIG
    pid = wait_for_service(server).pid
    server.open_gate
    server.alive_until("the thread") { server.read("beat") == pid.to_s }
  end

  it "may supervise processes of its own, whose signals it traps" do
    server = start(config: <<~CONFIG)
      before_service_worker_ready do |_, _|
        job = spawn("sleep", "600")
        File.write("job", job)
        trap("TERM") { Process.kill(:TERM, job) }
        Thread.new { Process.wait(job); File.write("ended", $?.termsig.to_s); exit }
      end
    CONFIG
    pid = wait_for_service(server).pid
    server.signal(:TERM, to: pid)
    server.alive_until("the job's end") { server.read("ended") == "15" }
    server.alive_until("another service") { service(server)&.then { |found| found.pid != pid } }
    File.delete(server.path("ended"))
    job = server.read("job").to_i
    server.stop
    expect(server.running?(job)).to be(true)
  ensure
    Process.kill(:KILL, job) if job
  end

  it "is replaced with each generation" do
    server = start(config: noting_hook("before_service_worker_ready"))
    old = wait_for_service(server).pid
    server.signal(:USR2)
    new = wait_for_service(server, generation: 1).pid
    server.wait_for_workers(1, generation: 1)
    server.alive_until("the old one's end") { !server.running?(old) }
    expect(server.messages).to include("Sent SIGTERM to service gen=0 pid=#{old}")
    expect(server.lines("notes").map { |note| note.split[1] }).to eq([old, new].map(&:to_s))
  end

  it "is forked again when it dies, whatever the cause" do
    server = start(config: noting_hook("before_service_worker_ready"))
    mold = server.mold.pid
    %i[KILL TERM QUIT INT].each do |name|
      pid = wait_for_service(server).pid
      server.signal(name, to: pid)
      server.alive_until("another service after #{name}") { service(server)&.then { |found| found.pid != pid } }
    end
    expect(server.mold.pid).to eq(mold)
  end

  it "harms nobody when its hook fails" do
    server = start(config: <<~CONFIG)
      before_service_worker_ready do |_, _|
        File.write("attempts", "again\\n", mode: "a")
        raise "no luck" if File.readlines("attempts").size < 3
      end
    CONFIG
    pids = [server.mold.pid, server.worker.pid]
    wait_for_service(server)
    expect(server.log.scan(/before_service_worker_ready error: no luck \(RuntimeError\)/).size).to eq(2)
    expect([server.mold.pid, server.worker.pid]).to eq(pids)
  end

  it "is killed when its hook takes longer than spawn_timeout" do
    server = start(config: <<~CONFIG)
      spawn_timeout 1
      before_service_worker_ready { |_, _| (File.open("once", File::CREAT | File::EXCL) rescue nil) && sleep }
    CONFIG
    server.wait_for_log(/service gen=0 pid=\d+ timed out, killing/)
    wait_for_service(server)
    expect(server.get.body).to eq("hello")
  end

  it "whose last hook fails exits all the same" do
    failing = noting_hook("before_service_worker_exit", "raise 'no luck'")
    server = start(config: noting_hook("before_service_worker_ready") + failing)
    wait_for_service(server)
    expect(server.stop.exitstatus).to eq(0)
    expect(server.log).to match(/before_service_worker_exit error: no luck \(RuntimeError\)/)
      .and match(/service gen=0 pid=\d+ reaped \(.*exit 0>\)/)
  end

  it "ends when the monitor is killed, though it has trapped TERM" do
    server = start(config: "before_service_worker_ready { |_, _| trap('TERM') { File.write('term', 'seen') } }")
    pid = wait_for_service(server).pid
    server.signal(:KILL)
    wait_until("the service's end", seconds: 6) { !server.running?(pid) }
  end

  it "keeps the listening sockets, and does not accept from them" do
    server = start(workers: 1, config: noting_hook("before_service_worker_ready"))
    wait_for_service(server)
    pid = server.worker.pid
    expect(Array.new(20) { server.get.body }).to all(eq("hello"))
    expect(server.worker.pid).to eq(pid)
  end

  it "leaves in its own way when it is sent TERM, also while its first hook runs" do
    hooks = noting_hook("before_service_worker_ready", "File.exist?('once') || #{ServerExamples::AT_GATE}")
    server = start(config: hooks + noting_hook("before_service_worker_exit"), ready: false)
    server.wait_for_log(/service gen=0 pid=\d+ spawned/)
    pid = server.alive_until("the first hook") { server.lines("notes").first }.split[1].to_i
    server.signal(:TERM, to: pid)
    server.write("once", "")
    server.open_gate
    second = server.alive_until("another service") { service(server)&.then { |found| found.pid != pid && found.pid } }
    server.signal(:TERM, to: second)
    server.wait_for_log(/service gen=0 pid=#{second} reaped \(.*exit 0>\)/)
    expect(server.lines("notes").grep(/exit/).map { |note| note.split[1].to_i }).to eq([pid, second])
  end
end
