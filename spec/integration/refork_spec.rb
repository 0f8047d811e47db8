# frozen_string_literal: true

require "support/server"

RSpec.describe "a refork", :server do
  let(:telling_pid) { "run ->(_env) { [200, {}, [Process.pid.to_s]] }" }

  it "by USR2 replaces the mold and every worker, once" do
    server = start(workers: 3)
    before = server.children.map(&:pid)
    server.signal(:USR2)
    server.wait_for_workers(3, generation: 1)
    server.alive_until("one mold") { server.children.size == 4 && server.mold.generation == 1 }
    expect(server.children.map(&:pid) & before).to be_empty
    expect(server.log.scan(/gen=1 pid=\d+ registered/).size).to eq(4)
  end

  it "promotes the warmest worker" do
    server = start(telling_pid, workers: 3, config: "before_fork { |_| #{noting("forkers", "Process.pid")} }")
    mold = server.mold.pid.to_s
    warm = server.get.body
    wait_until("the count") { server.workers.any? { |worker| worker.status == "requests: 1, waiting" } }
    server.signal(:USR2)
    server.wait_for_workers(3, generation: 1)
    expect(server.lines("forkers").first(4)).to eq([mold, mold, mold, warm])
  end

  it "by number of requests happens when a worker has served as many" do
    server = start(telling_pid, config: "refork_after [3, false]")
    pids = Array.new(3) { server.get.body }.uniq
    server.wait_for_workers(1, generation: 1)
    expect(server.messages).to include("worker=0 gen=0 pid=#{pids.first} processed 3 requests, triggering a refork")
      .and include("worker=0 gen=0 pid=#{pids.first} refork condition met, promoting ourselves")
    expect(pids.size).to eq(1)
    later = Array.new(5) { server.get.body }.uniq
    expect([later.size, server.worker.generation]).to eq([1, 1])
  end

  it "can have a condition of one's own" do
    server = start(config: <<~CONFIG)
      class OnDemand
        def met?(worker, logger) = File.exist?("wanted") && worker.requests_count > 2 && logger.info("it is time")
        def backoff! = File.write("backoff", "x")
      end
      refork_condition OnDemand.new
    CONFIG
    2.times { server.get }
    # It is asked after the response, so a client that has it knows nothing yet.
    wait_until("the worker") { server.worker.status == "requests: 2, waiting" }
    server.write("wanted", "")
    server.get
    server.wait_for_workers(1, generation: 1)
    expect([server.messages.count("it is time"), server.read("backoff")]).to eq([1, "x"])
  end

  it "that is asked for twice while one is under way happens exactly once more" do
    server = start(workers: 2, config: ServerExamples::SLOW_REFORK)
    server.signal(:USR2)
    wait_until("the new mold") { server.children.any? { |child| child.mold? && child.generation == 1 } }
    # One after the other: the same signal sent twice at once is one signal.
    server.signal(:USR2)
    server.signal(:TTIN)
    server.wait_for_log(/worker=2 gen=0 pid=\d+ ready/)
    server.signal(:USR2)
    server.signal(:TTIN)
    server.wait_for_log(/worker=3 gen=0 pid=\d+ ready/)
    server.open_gate
    server.wait_for_workers(4, generation: 2)
    server.signal(:TTIN)
    server.wait_for_log(/worker=4 gen=\d pid=\d+ ready/)
    expect(server.log).to match(/worker=4 gen=2 pid=\d+ ready/)
    expect(server.log).not_to match(/gen=3/)
  end

  it "fails no request" do
    server = start(workers: 2)
    done = false
    clients = Array.new(2) do
      Thread.new do
        answers = []
        answers << server.get.body until done
        answers
      end
    end
    2.times do |round|
      server.signal(:USR2)
      # Busy workers are hardly ever seen waiting.
      server.alive_until("the end") { server.workers.map(&:generation) == [round + 1] * 2 && server.children.size == 3 }
    end
    done = true
    answers = clients.flat_map(&:value)
    expect(answers.uniq).to eq(["hello"])
    expect(answers.size).to be > 10
  ensure
    done = true
  end

  describe "with workers that are not safe to fork" do
    let(:rackup) { <<~'RUBY' }
      run lambda { |env|
        Pitchfork::Info.no_longer_fork_safe! if env["PATH_INFO"] == "/unsafe"
        [200, {}, ["#{Process.pid} #{Pitchfork::Info.fork_safe?}"]]
      }
    RUBY

    it "passes them over" do
      server = start(rackup, workers: 2, config: "before_fork { |_| #{noting("forkers", "Process.pid")} }")
      pid = server.get("/unsafe").body[/(\d+) false/, 1]
      other = server.workers.map { |worker| worker.pid.to_s } - [pid]
      server.signal(:USR2)
      server.wait_for_workers(2, generation: 1)
      expect(server.lines("forkers")[2]).to eq(other.first)
    end

    it "does not happen when there are no others, and says so" do
      server = start(rackup)
      pid = server.get("/unsafe").body[/(\d+) false/, 1]
      server.signal(:USR2)
      server.wait_for_log(/ERROR .*worker=0 gen=0 pid=#{pid} is no longer fork safe, can't refork/)
      expect(server.get.body).to eq("#{pid} false")
      expect(server.mold.generation).to eq(0)
    end

    it "does not happen when it is the application that is not, as soon as it is loaded" do
      server = start("Pitchfork::Info.no_longer_fork_safe!\n#{rackup}", config: "refork_after [1]")
      expect(Array.new(2) { server.get.body }).to all(end_with("false"))
      server.signal(:USR2)
      server.wait_for_log(/worker=0 gen=0 pid=\d+ is no longer fork safe, can't refork/)
      expect(server.log).not_to include("gen=1")
    end

    it "is not asked for by them" do
      server = start(rackup, config: "refork_after [2]")
      Array.new(4) { server.get("/unsafe") }
      expect(server.log).not_to match(/triggering a refork/)
    end
  end

  it "is called off when no worker comes up from the new mold" do
    server = start(workers: 2, config: "after_worker_fork { |_, worker| raise 'no luck' if worker.generation == 1 }")
    server.signal(:USR2)
    server.wait_for_log(/no worker came up from mold gen=1 pid=\d+, keeping the old mold/)
    server.wait_for_workers(2, generation: 0)
    server.alive_until("the end of the new mold") { server.children.size == 3 }
    expect([server.get.body, server.mold.generation]).to eq(["hello", 0])
  end
end
