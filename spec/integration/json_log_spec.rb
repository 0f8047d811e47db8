# frozen_string_literal: true

require "json"
require "support/server"

RSpec.describe "a log in JSON", :server do
  def records(server) = server.log.lines.map { |line| JSON.parse(line, symbolize_names: true) }

  it "has all lines of a server's life, each with who wrote it and what it is about" do
    rackup = 'run ->(env) { raise "no luck\n" if env["PATH_INFO"] == "/raise"; [200, {}, []] }'
    server = start(rackup, config: "log_format :json\nlisten '127.0.0.1:0'", listen: [], ready: false)
    wait_until("listening") { server.log.include?("listening on") }
    server.wait_for_workers(1)
    address = records(server).find { |record| record.dig(:facts, :addr) }.dig(:facts, :addr)
    expect(server.exchange("GET /raise HTTP/1.1\r\nHost: a\r\n\r\n", address).status).to eq(500)
    worker = server.worker.pid
    mold = server.mold.pid
    server.stop
    all = records(server)
    expect(all.map { |record| record[:pid] }.uniq).to contain_exactly(server.pid, mold, worker)
    expect(all).to include(
      include(message: "worker=0 gen=0 pid=#{worker} ready", pid: worker,
              facts: { worker: 0, generation: 0, pid: worker }, process: { role: "worker", worker: 0, generation: 0 }),
      include(message: "mold gen=0 pid=#{mold} spawned", process: { role: "mold", generation: 0 }),
      include(level: "ERROR", pid: worker, message: 'app error: "no luck\n" (RuntimeError)',
              error: include(class: "RuntimeError", message: "no luck\n", backtrace: start_with(/\Aconfig\.ru:1/))),
      include(process: { role: "monitor" }, facts: { worker: 0, generation: 0, pid: worker, exit_status: 0 }),
      include(process: { role: "monitor" }, message: "monitor complete status=0", facts: { status: 0 })
    )
  end
end
