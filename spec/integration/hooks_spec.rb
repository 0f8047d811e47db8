# frozen_string_literal: true

require "json"
require "support/server"

RSpec.describe "hooks", :server do
  # A configuration with all hooks, each of which notes its name and process.
  def noting_hooks
    { before_fork: "server", after_mold_fork: "server, mold", after_worker_fork: "server, worker",
      after_worker_ready: "server, worker", after_monitor_ready: "server", before_worker_exit: "server, worker",
      after_worker_exit: "server, worker, status", after_request_complete: "server, worker, env" }
      .map { |name, arguments| "#{name} { |#{arguments}| #{noting("notes", "'#{name} ' + Process.pid.to_s")} }\n" }.join
  end

  # A piece of code that runs once in the life of a server, whichever process comes first.
  def once(code) = "(File.open('once', File::CREAT | File::EXCL) rescue nil) && (#{code})"

  it "run in the right processes, in the right order" do
    server = start(config: noting_hooks)
    server.alive_until("the hook in the monitor") { server.read("notes").include?("after_monitor_ready") }
    server.get
    worker = server.worker.pid
    mold = server.mold.pid
    server.signal(:USR2)
    server.wait_for_workers(1, generation: 1)
    second_worker = server.worker.pid
    second_mold = server.alive_until("the new mold alone") { server.mold if server.mold&.generation == 1 }.pid
    server.stop
    in_monitor, elsewhere = server.lines("notes").partition { |note| note.end_with?(" #{server.pid}") }
    expect(elsewhere).to eq(
      ["after_mold_fork #{mold}", "before_fork #{mold}", "after_worker_fork #{worker}", "after_worker_ready #{worker}",
       "after_request_complete #{worker}", "before_fork #{worker}", "after_mold_fork #{second_mold}",
       "before_worker_exit #{worker}", "before_fork #{second_mold}", "after_worker_fork #{second_worker}",
       "after_worker_ready #{second_worker}", "before_worker_exit #{second_worker}"]
    )
    expect(in_monitor).to eq(["after_monitor_ready #{server.pid}", *["after_worker_exit #{server.pid}"] * 4])
  end

  it "get the server" do
    server = start(workers: 2, config: <<~'CONFIG')
      timeout 7, cleanup: 3
      after_worker_ready do |server, _worker|
        facts = [server.class, server.worker_processes, server.timeout, server.config[:soft_timeout], server.logger.level]
        File.write("facts", "#{facts.join(" ")}\n", mode: "a")
      end
    CONFIG
    wait_until("the hooks") { server.lines("facts").size == 2 }
    expect(server.lines("facts").uniq).to eq(["PitchforkRs::HttpServer 2 10 7 0"])
  end

  it "get the process they are about" do
    server = start(workers: 2, config: <<~'CONFIG')
      require "json"
      tell = lambda do |hook, worker|
        facts = %i[nr pid generation requests_count mold? worker? service? ready? exiting? outdated? to_log inspect]
        facts = facts.to_h { |name| [name, worker.public_send(name)] }
        File.write(hook, JSON.generate(facts.merge(equal: [worker == worker.nr, worker == 5, worker == worker, worker == nil])))
      end
      after_mold_fork { |_, mold| tell.call("mold", mold) if mold.generation.zero? }
      after_worker_fork { |_, worker| tell.call("fork", worker) if worker == 1 }
      after_request_complete { |_, worker, env| tell.call("request", worker) if worker.equal?(env["pitchfork.worker"]) }
      before_worker_exit { |_, worker| tell.call("leaving", worker) if worker == 1 }
      after_worker_exit { |_, worker, _| tell.call("gone", worker) if worker == 1 }
    CONFIG
    mold = server.mold.pid
    pid = server.worker(1).pid
    server.get
    facts = ->(name) { JSON.parse(server.read(name), symbolize_names: true) }
    expect(facts.call("mold")).to include(
      nr: nil, pid: mold, generation: 0, requests_count: 0, mold?: true, worker?: false, service?: false, ready?: false,
      exiting?: false, to_log: "mold gen=0 pid=#{mold}", inspect: "#<PitchforkRs::Worker mold gen=0 pid=#{mold}>"
    )
    expect(facts.call("fork")).to include(
      nr: 1, pid: pid, generation: 0, requests_count: 0, mold?: false, worker?: true, service?: false, ready?: false,
      exiting?: false, outdated?: false, to_log: "worker=1 gen=0 pid=#{pid}", equal: [true, false, true, false]
    )
    wait_until("the hook") { server.read("request").end_with?("}") }
    expect(facts.call("request")).to include(requests_count: 1, ready?: true, exiting?: false, outdated?: false)
    server.stop
    expect(facts.call("leaving")).to include(nr: 1, pid: pid, ready?: true, exiting?: true)
    expect(facts.call("gone")).to include(
      nr: 1, pid: pid, worker?: true, exiting?: true, equal: [true, false, true, false],
      to_log: "worker=1 gen=0 pid=#{pid}"
    )
  end

  it "get the status of a process that has ended" do
    note = noting("statuses", "[worker.to_log, status.pid, status.termsig].join(' ')")
    server = start(config: "after_worker_exit { |_, worker, status| #{note} }")
    pid = server.worker.pid
    server.signal(:KILL, to: pid)
    wait_until("the hook") { server.lines("statuses").any? }
    expect(server.lines("statuses")).to eq(["worker=0 gen=0 pid=#{pid} #{pid} 9"])
  end

  it "get the generation of each new mold" do
    note = noting("molds", "[mold.generation, mold.pid].join(' ')")
    server = start(config: "after_mold_fork { |_, mold| #{note} }")
    molds = [server.mold]
    [1, 2].each do |generation|
      server.signal(:USR2)
      server.wait_for_workers(1, generation: generation)
      molds << server.alive_until("the mold") { server.mold if server.mold&.generation == generation }
    end
    expect(server.lines("molds")).to eq(molds.map { |mold| "#{mold.generation} #{mold.pid}" })
  end

  it "find what the application and the server tell each other" do
    rackup = "run ->(_env) { [200, {}, [Pitchfork::Info.live_workers_count.to_s]] }"
    server = start(rackup, workers: 2, config: <<~'CONFIG')
      info = Pitchfork::Info
      tell = ->(name) { File.write(name, [info.workers_count, info.shutting_down?, info.fork_safe?].join(" ")) }
      after_worker_ready { |_, _| tell.call("ready") }
      before_worker_exit { |_, _| tell.call("leaving") }
    CONFIG
    expect(server.get.body).to eq("2")
    server.stop
    expect([server.read("ready"), server.read("leaving")]).to eq(["2 false true", "2 true true"])
  end

  it "may run programs and wait for them, as the application may, without losing a status" do
    server = start("run ->(_env) { system('exit 3'); [200, {}, [$?.exitstatus.to_s]] }", config: <<~'CONFIG')
      tell = lambda do |who|
        system("exit 5")
        File.write("statuses", "#{who} #{$?.exitstatus} #{`echo out`}", mode: "a")
      end
      after_mold_fork { |_, _| tell.call("mold") }
      after_worker_ready { |_, _| tell.call("worker") }
      after_monitor_ready { |_| tell.call("monitor") }
      after_worker_exit { |_, _, _| tell.call("exit") }
    CONFIG
    expect(server.get.body).to eq("3")
    server.signal(:KILL, to: server.worker.pid)
    wait_until("the hooks") { server.lines("statuses").size == 5 }
    expect(server.lines("statuses").sort).to eq(["exit 5 out", "mold 5 out", "monitor 5 out", *["worker 5 out"] * 2])
  end

  describe "that raise" do
    it "in before_fork end the mold, and nobody else" do
      server = start(config: "before_fork { |_| #{once("raise 'no luck'")} }", ready: false)
      server.wait_until_ready
      expect(server.get.body).to eq("hello")
      expect(server.log).to match(/ERROR .*no luck \(RuntimeError\)/)
        .and match(/mold gen=0 pid=\d+ reaped \(.*exit 1>\)/)
    end

    it "in before_fork of a refork end the worker, and nobody else" do
      server = start(workers: 2, config: <<~CONFIG)
        before_fork { |_| raise "no luck" if File.read("/proc/self/cmdline").include?("worker[") }
      CONFIG
      server.signal(:USR2)
      server.wait_for_log(/worker=\d gen=0 pid=\d+ reaped \(.*exit 1>\)/)
      server.wait_for_workers(2, generation: 0)
      expect(server.get.body).to eq("hello")
    end

    it "in after_mold_fork end the first mold, and so the server" do
      server = start(config: "after_mold_fork { |_, _| raise 'no luck' }", ready: false)
      expect(server.wait_for_end.exitstatus).to eq(1)
      expect(server.log).to match(/no luck \(RuntimeError\)/)
    end

    it "in after_mold_fork of a refork leave the old mold in its place" do
      server = start(workers: 2, config: "after_mold_fork { |_, mold| raise 'no luck' if mold.generation == 1 }")
      pids = server.children.map(&:pid)
      server.signal(:USR2)
      server.wait_for_log(/mold gen=1 pid=\d+ reaped/)
      server.wait_for_log(/keeping the old mold/)
      expect(server.children.map(&:pid)).to match_array(pids)
      expect(server.get.body).to eq("hello")
    end

    %w[after_worker_fork after_worker_ready].each do |hook|
      it "in #{hook} end the worker, which is replaced" do
        code = once("raise 'no luck'")
        server = start(workers: 2, config: "#{hook} { |_, worker| worker == 1 && #{code} }", ready: false)
        server.wait_until_ready
        expect(server.log).to match(/no luck \(RuntimeError\)/).and match(/worker=1 gen=0 pid=\d+ reaped \(.*exit 1>\)/)
        expect(server.log.scan(/reaped/).size).to eq(1)
      end
    end

    it "in after_request_complete are logged, and the worker lives" do
      server = start(config: "after_request_complete { |_, _, _| raise 'no luck' }")
      pid = server.worker.pid
      expect(Array.new(2) { server.get.body }).to eq(%w[hello hello])
      server.wait_for_log(/listen loop error: no luck \(RuntimeError\)/, count: 2)
      expect(server.worker.pid).to eq(pid)
    end

    it "in before_worker_exit are logged, and the exit goes on" do
      server = start(config: "before_worker_exit { |_, _| raise 'no luck' }")
      expect(server.stop.exitstatus).to eq(0)
      expect(server.log).to match(/ERROR .*before_worker_exit error: no luck \(RuntimeError\)/)
        .and match(/worker=0 gen=0 pid=\d+ reaped \(.*exit 0>\)/)
    end

    it "in after_worker_exit are logged, and the server lives" do
      server = start(config: "after_worker_exit { |_, _, _| raise 'no luck' }")
      pid = server.worker.pid
      server.signal(:KILL, to: pid)
      server.wait_for_log(/ERROR .*monitor loop error: no luck \(RuntimeError\)/)
      server.wait_for_another_worker(pid)
      expect(server.stop.exitstatus).to eq(0)
    end

    it "in after_monitor_ready end the server with status 1" do
      server = start(config: "after_monitor_ready { |_| raise 'no luck' }", ready: false)
      expect(server.wait_for_end.exitstatus).to eq(1)
      expect(server.log).to match(/no luck \(RuntimeError\)/)
    end
  end

  %w[after_worker_fork after_worker_ready].each do |hook|
    it "may exit: #{hook} ends that worker" do
      server = start(workers: 2, config: "#{hook} { |_, worker| worker == 1 && #{once("exit")} }", ready: false)
      server.wait_until_ready
      expect(server.log).to match(/worker=1 gen=0 pid=\d+ reaped \(.*exit 0>\)/)
      expect(server.log).not_to match(/SystemExit/)
    end
  end

  it "may exit: after_request_complete ends that worker, with its own hook run" do
    server = start(config: <<~CONFIG)
      after_request_complete { |_, _, _| #{once("exit")} }
      before_worker_exit { |_, worker| File.write("leaving", worker.nr) }
    CONFIG
    pid = server.worker.pid
    expect(server.get.body).to eq("hello")
    server.wait_for_another_worker(pid)
    expect([server.get.body, server.read("leaving")]).to eq(%w[hello 0])
  end

  it "may take their time in the monitor: what the children have said meanwhile counts before their deadlines" do
    server = start(workers: 2, config: <<~CONFIG)
      spawn_timeout 1
      timeout 3, cleanup: 2
      after_worker_exit { |_, _, _| sleep 1.3 }
    CONFIG
    pids = server.workers.map(&:pid)
    pids.each { |pid| server.signal(:KILL, to: pid) }
    server.wait_for_log(/worker=\d gen=0 pid=\d+ ready/, count: 4)
    server.wait_for_workers(2)
    expect(server.log.scan(/spawning\.\.\./).size).to eq(4)
    expect(server.log).not_to match(/killing|abandoning/)
  end
end
