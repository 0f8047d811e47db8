# frozen_string_literal: true

require "support/server"

RSpec.describe "failures to come up", :server do
  let(:failing) { <<~'CONFIG' }
    after_worker_fork do |_, worker|
      File.write("attempts", "#{Process.clock_gettime(Process::CLOCK_MONOTONIC)}\n", mode: "a")
      raise "no luck"
    end
  CONFIG

  it "end the server when there are more in a row than max_consecutive_spawn_errors" do
    server = start(ready: false, config: "#{failing}max_consecutive_spawn_errors 3")
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(server.lines("attempts").size).to eq(4)
    expect(server.messages.grep(/consecutive/))
      .to match([a_string_starting_with("4 consecutive failures to spawn children, aborting")])
    expect(server.log).to match(/after_worker_fork error: no luck \(RuntimeError\)/)
    expect(server.processes).to be_empty
  end

  it "do not become a storm of forks without that limit" do
    server = start(ready: false, workers: 16, config: failing)
    # With nothing but the pauses of each number, all 16 would be tried at once, and again after 100 ms.
    server.alive_until("20 attempts") { server.lines("attempts").size >= 20 }
    times = server.lines("attempts").map(&:to_f)
    expect(times[19] - times[0]).to be > 0.4
    expect(server.stop.exitstatus).to eq(0)
  end

  it "are none when before_fork takes long, but for no fork too long" do
    server = start(ready: false, workers: 3, config: "spawn_timeout 1\nbefore_fork { |_| sleep 0.6 }")
    server.wait_until_ready
    expect(server.log).not_to match(/abandoning/)
    expect(server.log.scan(/spawning\.\.\./).size).to eq(3)
  end

  it "do not have before_fork run for spawns that were given up meanwhile" do
    note = noting("forks", "Process.pid")
    server = start(workers: 2, config: "spawn_timeout 1\nbefore_fork { |_| #{note} }")
    mold = server.mold.pid
    server.signal(:STOP, to: mold)
    server.workers.each { |worker| server.signal(:KILL, to: worker.pid) }
    server.wait_for_log(/worker=\d gen=0 timed out during spawn, abandoning/, count: 3)
    server.signal(:CONT, to: mold)
    server.wait_for_workers(2)
    given_up = server.log.scan(/abandoning/).size
    expect(server.lines("forks").size).to be <= server.log.scan(/spawning\.\.\./).size - given_up
  end

  it "count although molds come up in between: one that cannot fork is no success" do
    server = start(ready: false, config: "max_consecutive_spawn_errors 2\nbefore_fork { |_| raise 'no luck' }")
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(server.log).to match(/3 consecutive failures to spawn children, aborting/)
  end
end
