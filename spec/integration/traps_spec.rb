# frozen_string_literal: true

require "support/server"

# What an application and its hooks may do with signals, threads and exits of their own.
RSpec.describe "an application", :server do
  it "may trap TERM and INT in its workers: the server does without these signals" do
    server = start(workers: 2, config: <<~'CONFIG')
      after_worker_ready do |_, worker|
        %w[TERM INT].each { |name| trap(name) { File.write("trapped", "#{name} #{worker.nr}\n", mode: "a") } }
      end
    CONFIG
    pids = server.workers.map(&:pid)
    server.signal(:TERM, to: pids[0])
    server.signal(:INT, to: pids[1])
    server.alive_until("the handlers") { server.lines("trapped").size == 2 }
    expect(server.lines("trapped").sort).to eq(["INT 1", "TERM 0"])
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    expect(server.stop.exitstatus).to eq(0)
    expect(server.log).not_to match(/killing/)
  end

  it "may trap TERM in the mold without keeping it from leaving" do
    server = start(config: "after_mold_fork { |_, _| trap('TERM') { File.write('trapped', 'yes') } }")
    old = server.mold.pid
    server.signal(:USR2)
    server.wait_for_workers(1, generation: 1)
    server.alive_until("the old mold's end") { !server.running?(old) }
    expect(server.stop.exitstatus).to eq(0)
    expect(server.log).not_to match(/killing/)
  end

  it "that traps TERM in a worker does not outlive a monitor that is killed" do
    server = start(config: "after_worker_ready { |_, _| trap('TERM') { nil } }")
    pid = server.worker.pid
    server.signal(:KILL)
    wait_until("the worker's end", seconds: 6) { !server.running?(pid) }
  end

  it "may start threads in the mold of generation 0, and fork with them" do
    server = start(<<~'RUBY', workers: 2, config: <<~'CONFIG')
      run ->(_env) { [200, {}, [Thread.list.map { |thread| thread[:beat] }.compact.size.to_s]] }
    RUBY
      after_mold_fork do |_, mold|
        next unless mold.generation.zero?

        Process.warmup if Process.respond_to?(:warmup)
        Thread.new { Thread.current[:beat] = true; loop { File.write("beat", Process.pid.to_s); sleep 0.01 } }
      end
    CONFIG
    # The file is empty for a moment in each turn.
    server.alive_until("a beat of the mold") { server.read("beat").to_i == server.mold.pid }
    expect(server.get.body).to eq("0")
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    expect(server.get.body).to eq("0")
  end

  it "may start threads in a worker, which a promotion leaves behind" do
    server = start(<<~'RUBY', config: <<~'CONFIG')
      run ->(_env) { [200, {}, [($beat&.alive?).inspect]] }
    RUBY
      after_worker_ready { |_, _| $beat = Thread.new { sleep } }
    CONFIG
    expect(server.get.body).to eq("true")
    server.signal(:USR2)
    server.wait_for_workers(1, generation: 1)
    expect(server.get.body).to eq("true")
  end

  it "may close and open connections again in before_fork and after each fork" do
    server = start(workers: 2, config: <<~'CONFIG')
      opened = ->(who) { $database = File.open("database", "a+"); $database.sync = true; $database.puts(who) }
      before_fork { |_| $database&.close }
      after_mold_fork { |_, mold| opened["mold #{mold.generation}"] }
      after_worker_fork { |_, worker| opened["worker #{worker.generation}"] }
    CONFIG
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    expect(server.lines("database").tally)
      .to eq("mold 0" => 1, "worker 0" => 2, "mold 1" => 1, "worker 1" => 2)
  end

  it "may call exit in the monitor's hook: the server stops after the work in hand, with that status" do
    server = start(config: "after_worker_exit { |_, worker, _| exit 3 if worker.worker? }", ready: false)
    server.wait_until_ready
    server.signal(:KILL, to: server.worker.pid)
    expect(server.wait_for_end.exitstatus).to eq(3)
    expect(server.messages.last).to eq("monitor complete status=3")
    expect(server.processes).to be_empty
  end

  it "may call exit in after_monitor_ready: the server stops, with that status" do
    server = start(config: "after_monitor_ready { |_| exit 3 }", ready: false)
    expect(server.wait_for_end.exitstatus).to eq(3)
    expect(server.messages.last).to eq("monitor complete status=3")
  end

  it "may reap whatever child of the mold it finds" do
    server = start(workers: 2, config: <<~'CONFIG')
      after_mold_fork { |_, _| trap("CHLD") { loop { Process.wait(-1, Process::WNOHANG) || break } rescue nil } }
    CONFIG
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    server.alive_until("one mold") { server.children.size == 3 && server.mold&.generation == 1 }
    expect(server.log).not_to match(/ERROR|FATAL/)
  end

  it "may have threads in the monitor that fail: the server lives" do
    server = start(config: <<~CONFIG)
      after_monitor_ready do |_|
        Thread.new do
          Thread.current.abort_on_exception = true
          Thread.current.report_on_exception = false
          # Not while the monitor writes a line: Logger would swallow it.
          sleep 0.01 until File.exist?("enough")
          raise "no luck"
        end
      end
    CONFIG
    server.wait_for_log(/monitor process ready/)
    server.write("enough", "")
    server.wait_for_log(/ERROR .*monitor loop error: no luck \(RuntimeError\)/)
    expect(server.get.body).to eq("hello")
    expect(server.stop.exitstatus).to eq(0)
  end

  it "may have threads in the monitor that exit: the server stops after the work in hand, with that status" do
    server = start("run ->(_env) { #{ServerExamples::AT_GATE}; [200, {}, ['late']] }", config: <<~'CONFIG')
      after_monitor_ready { |_| Thread.new { sleep 0.01 until File.exist?("enough"); exit 3 } }
    CONFIG
    late = Thread.new { server.get.body }
    server.alive_until("the request") { server.worker.status.include?("processing") }
    server.write("enough", "")
    server.wait_for_log(/exit in a hook, starting graceful shutdown/)
    server.open_gate
    expect([late.value, server.wait_for_end.exitstatus]).to eq(["late", 3])
    expect(server.messages.last).to eq("monitor complete status=3")
  end

  it "may fork in a request and let both processes return or exit: the server goes on in one of them" do
    server = start(<<~'RUBY', config: <<~CONFIG)
      run lambda { |env|
        case env["PATH_INFO"]
        when "/return" then $forked = "returns " unless fork
        when "/exit" then fork || ($forked = "exits "; exit)
        end
        [200, {}, [$forked.inspect]]
      }
      at_exit { File.write("at_exit", $forked.to_s, mode: "a") }
    RUBY
      before_worker_exit { |_, _| #{noting("leaving", "Process.pid")} }
    CONFIG
    pid = server.worker.pid
    %w[return exit].each { |what| server.raw("GET /#{what} HTTP/1.1\r\nHost: a\r\n\r\n") }
    server.alive_until("the end of the other processes") { server.read("at_exit").split.sort == %w[exits returns] }
    expect(Array.new(5) { server.get.body }.uniq).to eq(["nil"])
    server.stop
    expect(server.lines("leaving")).to eq([pid.to_s])
  end

  it "may exit in a request, and take its time for it: that does not make the request late" do
    server = start(<<~'RUBY', config: <<~'CONFIG')
      run lambda { |env|
        next [200, {}, ["fine"]] unless env["PATH_INFO"] == "/exit"

        $exits = true
        sleep 1.5
        exit 7
      }
      at_exit { sleep(2) && File.write("at_exit", "through") if $exits }
    RUBY
      timeout 3
      after_worker_timeout { |_, _, _| File.write("timeout", "") }
    CONFIG
    pid = server.worker.pid
    server.raw("GET /exit HTTP/1.1\r\nHost: a\r\n\r\n")
    server.wait_for_another_worker(pid)
    expect(server.log).to match(/worker=0 gen=0 pid=#{pid} reaped \(.*exit 7>\)/)
    expect([server.read("at_exit"), File.exist?(server.path("timeout"))]).to eq(["through", false])
  end
end
