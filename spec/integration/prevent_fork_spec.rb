# frozen_string_literal: true

require "support/server"

RSpec.describe "Pitchfork.prevent_fork", :server do
  # `/hold` has a thread of the worker hold off forks until the gate is opened.
  let(:holding) { <<~RUBY }
    run lambda { |env|
      if env["PATH_INFO"] == "/hold"
        held = Queue.new
        Thread.new { Pitchfork.prevent_fork { Pitchfork.prevent_fork { held << true; File.open("gate", "r+", &:gets) } } }
        held.pop
      end
      [200, {}, ["fine"]]
    }
  RUBY

  it "makes a refork wait, with a line when that takes long" do
    server = start(holding)
    pid = server.worker.pid
    server.get("/hold")
    server.signal(:USR2)
    server.wait_for_log(/worker=0 gen=0 pid=#{pid} waits to fork: prevent_fork has been held for a second by #<Thread/)
    expect(server.children.map(&:generation).uniq).to eq([0])
    server.open_gate
    server.wait_for_workers(1, generation: 1)
    expect(server.get.body).to eq("fine")
  end

  it "gives the refork up when it takes too long, and the worker serves on" do
    server = start(holding, config: "spawn_timeout 3")
    pid = server.worker.pid
    server.get("/hold")
    server.signal(:USR2)
    server.wait_for_log(/worker=0 gen=0 pid=#{pid} gives up its fork: prevent_fork was not left within 1.5 seconds/)
    server.alive_until("the worker") { server.worker&.idle? }
    expect([server.get.body, server.worker.pid, server.worker.generation]).to eq(["fine", pid, 0])
    server.open_gate
    server.signal(:USR2)
    server.wait_for_workers(1, generation: 1)
  end
end
