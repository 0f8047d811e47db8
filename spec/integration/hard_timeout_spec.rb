# frozen_string_literal: true

require "support/server"

# What the monitor does about a worker that does not let itself be ended.
RSpec.describe "the hard timeout", :server do
  # `/native` keeps the GVL, in native code, for longer than anybody waits; no thread of Ruby's runs meanwhile.
  let(:stubborn) { <<~RUBY }
    require "fiddle"
    SLEEP = Fiddle::Function.new(Fiddle::Handle::DEFAULT["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
    run lambda { |env|
      SLEEP.call(60) if env["PATH_INFO"] == "/native"
      [200, {}, ["fine"]]
    }
  RUBY

  it "strikes native code that keeps the GVL, with the operator's signal, after the hook in the monitor" do
    server = start(stubborn, config: <<~'CONFIG')
      timeout 3, cleanup: 2
      timeout_signal { |pid| File.write("signalled", pid.to_s); :ABRT }
      after_worker_hard_timeout do |server, worker|
        facts = [server.class, worker.nr, worker.pid, worker.ready?, File.directory?("/proc/#{worker.pid}")]
        File.write("notes", ([Process.pid] + facts).join(" "))
      end
    CONFIG
    pid = server.worker.pid
    expect(server.raw("GET /native HTTP/1.1\r\nHost: a\r\n\r\n")).to eq("")
    server.wait_for_another_worker(pid)
    expect(server.read("notes")).to eq("#{server.pid} PitchforkRs::HttpServer 0 #{pid} true true")
    expect(server.read("signalled")).to eq(pid.to_s)
    expect(server.log).to match(/worker=0 gen=0 pid=#{pid} timed out, killing/)
      .and match(/worker=0 gen=0 pid=#{pid} reaped \(.*SIGABRT/)
  end

  it "strikes a worker that was stopped, idle though it is, and goes on when the hook fails" do
    # Whatever time the request before was given.
    server = start(<<~RUBY, config: <<~CONFIG)
      run ->(env) { env["pitchfork.timeout"].extend_deadline(100) && [200, {}, ["hello"]] }
    RUBY
      timeout 3, cleanup: 2
      after_worker_hard_timeout { |_, _| raise "no luck" }
    CONFIG
    server.get
    server.alive_until("the end of the request") { server.worker.idle? }
    pid = server.worker.pid
    server.signal(:STOP, to: pid)
    server.wait_for_another_worker(pid)
    expect(server.log).to match(/after_worker_hard_timeout error: no luck \(RuntimeError\)/)
      .and match(/worker=0 gen=0 pid=#{pid} reaped \(.*SIGKILL/)
    expect(server.get.body).to eq("hello")
  end

  it "kills when the operator's signal cannot be found out" do
    server = start(workers: 1, config: "timeout 3, cleanup: 2\ntimeout_signal { |_| :NONSENSE }")
    pid = server.worker.pid
    server.signal(:STOP, to: pid)
    server.wait_for_another_worker(pid)
    expect(server.log).to match(/timeout_signal error: .*NONSENSE/).and match(/pid=#{pid} reaped \(.*SIGKILL/)
  end

  it "takes the operator's signal by whatever name or number Process.kill does" do
    server = start(workers: 4, config: <<~CONFIG)
      timeout 3, cleanup: 2
      signals = [:SIGKILL, "KILL", "SIGKILL", 9]
      timeout_signal { |_| signals.shift }
    CONFIG
    server.workers.each { |worker| server.signal(:STOP, to: worker.pid) }
    server.wait_for_log(/reaped \(.*SIGKILL/, count: 4)
    expect(server.log).not_to include("timeout_signal error")
  end
end
