# frozen_string_literal: true

require "support/server"
require "time"

RSpec.describe "timeouts", :server do
  def answers_to(server, path) = server.raw("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")

  it "end a worker whose request takes too long, in its own way first" do
    server = start("run ->(env) { env['PATH_INFO'] == '/slow' ? sleep(60) : [200, {}, ['fine']] }", config: <<~'CONFIG')
      timeout 3
      before_worker_exit { |_, worker| File.write("leaving", "#{worker.nr}\n", mode: "a") }
    CONFIG
    pid = server.worker.pid
    expect(answers_to(server, "/slow")).to eq("")
    server.wait_for_another_worker(pid)
    name = "worker=0 gen=0 pid=#{pid}"
    expect(server.messages).to include("#{name} timed out, exiting", "#{name} exiting")
    expect(server.log).not_to match(/timed out, killing/)
    expect([server.lines("leaving"), server.get.body]).to eq([["0"], "fine"])
  end

  it "kill a worker that does not let itself be ended" do
    server = start(<<~RUBY, workers: 2, config: <<~CONFIG)
      run lambda { |env|
        next [200, {}, ["fine"]] unless env["PATH_INFO"] == "/stubborn"

        begin
          sleep
        rescue Exception
          retry
        end
      }
    RUBY
      timeout 3, cleanup: 2
      before_worker_exit { |_, _| #{noting("leaving", "Process.pid")} }
    CONFIG
    pids = server.workers.map(&:pid)
    expect(answers_to(server, "/stubborn")).to eq("")
    server.alive_until("another worker") do
      idle = server.idle_workers.map(&:pid)
      idle.size == 2 && (idle - pids).size == 1
    end
    nr, pid = server.log.match(/ERROR .*worker=(\d) gen=0 pid=(\d+) timed out, killing/)&.captures
    expect(server.log).to match(/worker=#{nr} gen=0 pid=#{pid} reaped \(.*SIGKILL.*\)/)
    expect(server.log.scan(/ reaped /).size).to eq(1)
    expect(server.lines("leaving")).to eq([pid])
    expect(server.get.body).to eq("fine")
    # Cleaning up may take 2 seconds, and the monitor looks once per second. 3 more would be the request's own again.
    soft, hard = %w[exiting killing].map { |what| Time.parse(server.log[/\[(\S+) #.* timed out, #{what}$/, 1]) }
    expect(hard - soft).to be_between(1.5, 4.5)
  end

  it "do not end a worker that waits for a client" do
    server = start("run ->(env) { [200, {}, [env['rack.input'].read, Process.pid.to_s]] }", config: "timeout 3")
    socket = server.connect
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nda")
    # Longer than soft and hard timeout together; nothing else would show it.
    expect(socket.wait_readable(5.5)).to be_nil
    socket.write("ta")
    expect(socket.read).to end_with("data#{server.worker.pid}")
  ensure
    socket&.close
  end

  it "bound a spawn: who hangs in a hook is killed and asked for again, and nobody else is disturbed" do
    server = start(workers: 2, ready: false, config: <<~'CONFIG')
      spawn_timeout 1
      after_worker_fork do |_, worker|
        next unless worker == 1
        File.write("attempts", "#{Process.pid}\n", mode: "a")
        sleep if File.readlines("attempts").size < 3
      end
    CONFIG
    server.wait_for_log(/worker=1 gen=0 pid=\d+ timed out, killing/)
    expect(server.get.body).to eq("hello")
    server.wait_until_ready
    attempts = server.lines("attempts")
    expect(attempts.size).to eq(3)
    expect(server.log.scan(/pid=(\d+) timed out, killing/).flatten).to eq(attempts.first(2))
    expect(server.worker(1).pid.to_s).to eq(attempts.last)
    expect(server.log.scan(/worker=0 gen=0 spawning/).size).to eq(1)
  end

  it "let more and more time pass between attempts to spawn" do
    server = start(ready: false, config: <<~'CONFIG')
      after_worker_fork do |_, _|
        File.write("attempts", "#{Process.clock_gettime(Process::CLOCK_MONOTONIC)}\n", mode: "a")
        raise "no luck" if File.readlines("attempts").size < 5
      end
    CONFIG
    server.wait_until_ready
    times = server.lines("attempts").map(&:to_f)
    pauses = times.each_cons(2).map { |before, after| after - before }
    expect(pauses.zip([0.1, 0.2, 0.4, 0.8]).map { |pause, least| pause >= least }).to eq([true] * 4), pauses.inspect
  end

  it "may be longer than anybody lives, as other limits may be larger than anything" do
    server = start(config: <<~CONFIG)
      timeout 10**30, cleanup: 10**30
      %i[spawn_timeout client_header_timeout client_body_timeout write_timeout max_consecutive_spawn_errors
         refork_max_unavailable client_body_buffer_size client_min_rate client_max_header_size client_max_body_size]
        .each { |directive| public_send(directive, 10**30) }
    CONFIG
    expect(server.get.body).to eq("hello")
    expect(server.stop.exitstatus).to eq(0)
  end
end
