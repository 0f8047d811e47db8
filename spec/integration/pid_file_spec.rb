# frozen_string_literal: true

require "support/server"

RSpec.describe "the pid file", :server do
  def start_with_pid(text = nil, rackup: ServerExamples::HELLO, **options)
    File.write("it.pid", text) if text
    start(rackup, config: "pid #{File.expand_path("it.pid").inspect}", **options)
  end

  it "names the monitor as soon as the addresses are bound, and goes with it" do
    server = start_with_pid
    expect(File.read("it.pid")).to eq("#{server.pid}\n")
    worker = server.worker.pid
    server.signal(:INT, to: worker)
    server.alive_until("another worker") { server.idle_workers.any? { |one| one.pid != worker } }
    server.signal(:USR2)
    server.wait_for_workers(1, generation: 1)
    expect(File.read("it.pid")).to eq("#{server.pid}\n")
    server.stop
    expect(File.exist?("it.pid")).to be(false)
  end

  it "is there during the boot, and gone after one that fails" do
    server = start_with_pid(rackup: "#{ServerExamples::AT_GATE}\nraise 'no luck'", ready: false)
    server.alive_until("the boot") { server.children.any? { |child| child.status == "booting" } }
    expect(File.read("it.pid")).to eq("#{server.pid}\n")
    server.open_gate
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(File.exist?("it.pid")).to be(false)
  end

  it "that was left behind is replaced" do
    pid = Process.spawn("true")
    Process.wait(pid)
    ["#{pid}\n", "", "0"].each do |text|
      server = start_with_pid(text)
      expect(File.read("it.pid")).to eq("#{server.pid}\n")
      server.stop
    end
  end

  it "that names a process which runs stops the start, and stays" do
    server = start_with_pid("#{Process.pid}\n", ready: false)
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(server.log)
      .to match(/\Apitchfork-rs: config\.rb:3: pid: .*it\.pid names process #{Process.pid}, which is running: stop/)
    expect(File.read("it.pid")).to eq("#{Process.pid}\n")
  end

  it "is not written over anything else" do
    server = start_with_pid("worker_processes 4\n", ready: false)
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(server.log).to match(/\Apitchfork-rs: config\.rb:3: pid: .*it\.pid is no pid file: name another one\n\z/)
    expect(File.read("it.pid")).to eq("worker_processes 4\n")
  end

  it "is left alone where it is another's by then" do
    server = start_with_pid
    File.write("it.pid", "1\n")
    server.stop
    expect(File.read("it.pid")).to eq("1\n")
  end

  it "is not removed by a process that was forked without our knowing" do
    require "pitchfork_rs"
    file = PitchforkRs::PidFile.new("it.pid", "here")
    file.write
    Process.wait(fork { file.remove.then { exit!(0) } })
    expect(File.read("it.pid")).to eq("#{Process.pid}\n")
    file.remove
    expect(File.exist?("it.pid")).to be(false)
  end

  it "is not written where an address is taken" do
    TCPServer.open("127.0.0.1", 0) do |taken|
      server = start_with_pid(listen: "127.0.0.1:#{taken.addr[1]}", ready: false)
      expect(server.wait_for_end.exitstatus).to eq(1)
      expect(File.exist?("it.pid")).to be(false)
    end
  end
end
