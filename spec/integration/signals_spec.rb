# frozen_string_literal: true

require "support/server"

RSpec.describe "signals", :server do
  let(:waiting) { <<~RUBY }
    run lambda { |env|
      #{ServerExamples::AT_GATE} if env["PATH_INFO"] == "/wait"
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  def busy(server)
    request = Thread.new { server.raw("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n") }
    server.alive_until("a busy worker") { server.workers.any? { |worker| worker.status.include?("processing: /wait") } }
    request
  end

  describe "to the monitor" do
    it "TTIN and TTOU change the number of workers" do
      server = start("run ->(_env) { [200, {}, [Pitchfork::Info.workers_count.to_s]] }", workers: 1)
      2.times do |round|
        server.signal(:TTIN)
        server.wait_for_workers(round + 2)
      end
      expect(server.get.body).to eq("3")
      server.signal(:TTOU)
      server.wait_for_workers(2)
      expect([server.workers.map(&:nr), server.get.body]).to eq([[0, 1], "2"])
      expect(server.messages.grep(/received/).map { |line| line[/\d+/] }).to eq(%w[2 3 2])
    end

    it "HUP, USR1 and WINCH end nobody, and nor do they in the children" do
      server = start
      pids = server.children.map(&:pid)
      %i[HUP USR1 WINCH].product([server.pid, *pids]) { |name, pid| server.signal(name, to: pid) }
      # Whoever was to die of it would not get to do this.
      server.get
      server.signal(:TTIN)
      server.wait_for_workers(2)
      expect(server.children.map(&:pid)).to include(*pids)
    end

    it "USR2, TTIN and TTOU that were meant for the monitor end no child" do
      server = start
      pids = server.children.map(&:pid)
      %i[USR2 TTIN TTOU].product(pids) { |name, pid| server.signal(name, to: pid) }
      server.get
      server.signal(:TTIN)
      server.wait_for_workers(2)
      expect(server.children.map(&:pid)).to include(*pids)
    end

    %i[QUIT TERM].each do |name|
      it "#{name} stops after the requests in hand and those that wait to be accepted" do
        server = start(waiting)
        in_hand = busy(server)
        queued = Array.new(3) { Thread.new { server.raw(ServerExamples::GET) } }
        wait_until("connections in the queue") { queued.all? { |thread| thread.status == "sleep" } }
        server.signal(name)
        server.wait_for_log(/#{name} received, starting graceful shutdown/)
        server.open_gate
        expect(server.wait_for_end.exitstatus).to eq(0)
        pid = server.log[/worker=0 gen=0 pid=(\d+) ready/, 1]
        expect([in_hand, *queued].map { |thread| RawResponse.parse(thread.value).body }).to eq([pid] * 4)
        expect { server.connect }.to raise_error(Errno::ECONNREFUSED)
      end
    end

    it "INT stops at once, whatever is in hand" do
      server = start(waiting, workers: 2)
      in_hand = busy(server)
      expect(server.stop(:INT).exitstatus).to eq(0)
      expect(in_hand.value).to eq("")
      expect(server.messages).to include("INT received, starting immediate shutdown", "monitor complete status=0")
      expect(server.log).not_to match(/killing/)
    end

    it "INT cuts a graceful shutdown short" do
      server = start(waiting)
      in_hand = busy(server)
      server.signal(:TERM)
      server.wait_for_log(/starting graceful shutdown/)
      expect(server.stop(:INT).exitstatus).to eq(0)
      expect(in_hand.value).to eq("")
      expect(server.log).not_to match(/killing/)
    end

    it "TERM during the boot stops with status 0" do
      server = start(ServerExamples::SLOW_BOOT, ready: false)
      server.alive_until("the boot") { server.children.any? { |child| child.status == "booting" } }
      expect(server.stop(:TERM).exitstatus).to eq(0)
      expect(server.processes).to be_empty
      expect(server.log).not_to match(/Error|No mold alive|killing/)
    end

    it "TERM while a worker runs its fork hook stops with status 0" do
      server = start(ready: false, config: "after_worker_fork { |_, _| #{ServerExamples::AT_GATE} }")
      server.wait_for_log(/worker=0 gen=0 pid=\d+ registered/)
      server.signal(:TERM)
      server.wait_for_log(/starting graceful shutdown/)
      server.open_gate
      expect(server.wait_for_end.exitstatus).to eq(0)
    end

    it "TERM during a refork stops with status 0" do
      server = start(config: ServerExamples::SLOW_REFORK)
      server.signal(:USR2)
      server.wait_for_log(/mold gen=1 pid=\d+ registered/)
      expect(server.stop(:TERM).exitstatus).to eq(0)
      expect(server.log).not_to match(/killing/)
    end

    it "USR2 before there is a mold is not lost" do
      server = start(ServerExamples::SLOW_BOOT, ready: false)
      server.alive_until("the boot") { server.children.any? { |child| child.status == "booting" } }
      server.signal(:USR2)
      server.open_gate
      server.wait_for_workers(1, generation: 1)
    end
  end

  describe "to a worker" do
    %i[QUIT TERM].each do |name|
      it "#{name} ends it after the request in hand, and it is replaced" do
        server = start(waiting)
        pid = server.worker.pid
        in_hand = busy(server)
        server.signal(name, to: pid)
        server.open_gate
        expect(RawResponse.parse(in_hand.value).body).to eq(pid.to_s)
        server.wait_for_another_worker(pid)
        expect(server.log).to match(/worker=0 gen=0 pid=#{pid} exiting/)
        expect(server.log).to match(/worker=0 gen=0 pid=#{pid} reaped \(.*exit 0>\)/)
      end
    end

    it "INT ends it at once, and it is replaced" do
      server = start(waiting)
      pid = server.worker.pid
      in_hand = busy(server)
      server.signal(:INT, to: pid)
      expect(in_hand.value).to eq("")
      server.wait_for_another_worker(pid)
    end
  end

  it "to the mold: TERM ends it, and a worker takes its place" do
    server = start(workers: 2)
    server.signal(:TERM, to: server.mold.pid)
    server.wait_for_workers(2, generation: 1)
    expect(server.get.body).to eq("hello")
  end
end
