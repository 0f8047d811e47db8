# frozen_string_literal: true

require "rbconfig"
require_relative "../../benchmark/lib/run/measurement"
require_relative "../support/waiting"

RSpec.describe "the benchmark's servers", :in_tmpdir do
  include Waiting

  # Answers each request with these bytes.
  def contender(name, answer)
    code = "require 'socket'; server = TCPServer.new('127.0.0.1', Integer(ARGV[0])); " \
           "loop { server.accept.then { |s| s.readpartial(1000); s.write(ARGV[1]); s.close } rescue nil }"
    Run::Contender.new(name) { |place| [RbConfig.ruby, "-e", code, place.address.port.to_s, answer] }
  end

  def measure(*contenders)
    scenario = Run::Scenario.new(name: "hello", title: "a short answer", path: "/hello")
    Run::Measurement.new(scenario, contenders, directory: Dir.pwd, rounds: 1, seconds: 1, limit: 10).run
  end

  it "are not timed if they give a wrong answer" do
    liar = contender("liar", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhallo\n")
    broken = contender("broken", "HTTP/1.1 500 Oops\r\nContent-Length: 6\r\n\r\nhello\n")
    result = measure(liar, broken)
    expect(result.rounds).to be_empty
    expect(result.failures["liar"]).to start_with(
      'liar answers /hello with status 200 and 6 bytes, "hallo\n" instead of status 200 and 6 bytes, "hello\n"'
    )
    expect(result.failures["broken"]).to start_with("broken answers /hello with status 500")
  end

  it "are reported if they do not start" do
    result = measure(Run::Contender.new("dead") { [RbConfig.ruby, "-e", "abort 'no such option'"] })
    expect(result.failures["dead"]).to match(/\Adead has ended before: listening\n.*no such option/m)
  end

  it "are ended even if the benchmark is killed" do
    library = File.expand_path("../../benchmark/lib/common/session", __dir__)
    script = "require '#{library}'; s = Bench::Session.new('sh', '-c', 'sleep 60 & sleep 60', log: 'log'); " \
             "puts s.pid; $stdout.flush; sleep"
    IO.popen([RbConfig.ruby, "-e", script]) do |benchmark|
      leader = Integer(benchmark.gets)
      wait_until("three processes") { Bench::Session.members(leader).size == 3 }
      Process.kill(:KILL, benchmark.pid)
      wait_until("their end") { Bench::Session.members(leader).empty? }
    end
  end

  describe Bench::Tool do
    it "ends a command that takes too long, and what that has started" do
      expect { described_class.capture("sh", "-c", "echo $$ > pid; sleep 60 & sleep 60", seconds: 0.5) }
        .to raise_error(Bench::Tool::Failed, "sh: no end within 0.5 s")
      group = Integer(File.read("pid"))
      wait_until("the end of both") { group_ended?(group) }
    end

    it "says why a command failed" do
      expect { described_class.capture("sh", "-c", "echo not so >&2; exit 3") }
        .to raise_error(Bench::Tool::Failed, /\Ash failed \(.* exit 3\): not so\z/)
      expect { described_class.capture("no-such-command") }
        .to raise_error(Bench::Tool::Failed, "wants the command no-such-command, which is not installed")
    end
  end
end
