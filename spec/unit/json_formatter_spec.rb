# frozen_string_literal: true

require "json"
require "logger"
require "time"
require "stringio"
require "pitchfork_rs/log"

RSpec.describe PitchforkRs::Log::JsonFormatter do
  let(:out) { StringIO.new }
  let(:logger) { Logger.new(out, progname: "[Pitchfork]", formatter: described_class.new) }

  after { PitchforkRs::Log.process = nil }

  def logged(message)
    out.truncate(out.rewind)
    logger.info(message)
    expect(out.string).to end_with("\n").and have_attributes(lines: have_attributes(size: 1), valid_encoding?: true)
    JSON.parse(out.string, symbolize_names: true)
  end

  def facts(message) = logged(message)[:facts]

  it "says when, who, and what" do
    before = Time.now
    record = logged("monitor process ready")
    expect(record).to match(level: "INFO", pid: Process.pid, progname: "[Pitchfork]", process: { role: "monitor" },
                            message: "monitor process ready", time: /T\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d\z/)
    expect(Time.iso8601(record[:time])).to be_between(before - 1, Time.now)
  end

  it "names the process that writes" do
    process = Struct.new(:nr, :generation, :kind) do
      def mold? = kind == :mold
      def service? = kind == :service
    end
    { process.new(3, 2, :worker) => { role: "worker", worker: 3, generation: 2 },
      process.new(nil, 1, :mold) => { role: "mold", generation: 1 },
      process.new(nil, 0, :service) => { role: "service", generation: 0 } }.each do |writer, told|
      PitchforkRs::Log.process = writer
      expect(logged("x")[:process]).to eq(told)
    end
  end

  {
    "worker=0 gen=1 pid=23 ready" => { worker: 0, generation: 1, pid: 23 },
    "mold gen=2 pid=24 spawned" => { role: "mold", generation: 2, pid: 24 },
    "monitor pid=25 ready" => { role: "monitor", pid: 25 },
    "reactor pid=26 ready" => { role: "reactor", pid: 26 },
    "service gen=0 pid=9 ready" => { role: "service", generation: 0, pid: 9 },
    "listening on addr=127.0.0.1:80 fd=7" => { addr: "127.0.0.1:80", fd: 7 },
    "monitor complete status=1" => { status: 1 },
    "worker=4 gen=0 pid=5 reaped (#<Process::Status: pid 5 exit 3>)" =>
      { worker: 4, generation: 0, pid: 5, exit_status: 3 },
    "mold gen=0 pid=5 reaped (#<Process::Status: pid 5 SIGKILL (signal 9)>)" =>
      { role: "mold", generation: 0, pid: 5, signal: 9 },
    "worker=0 gen=0 pid=1 processed 50 requests, triggering a refork" =>
      { worker: 0, generation: 0, pid: 1, requests: 50 },
    "QUIT received, starting graceful shutdown" => nil
  }.each do |line, found|
    it "finds the facts of #{line.inspect}" do
      expect(facts(line)).to eq(found)
    end
  end

  it "is valid whatever bytes a message holds" do
    every_byte = (0..255).map(&:chr).join.b
    {
      every_byte => every_byte.dup.force_encoding("UTF-8").scrub, "a\u2028\n\"\\" => "a\u2028\n\"\\",
      "caf\xE9" => "caf\uFFFD", "\xFF".dup.force_encoding("US-ASCII") => "\uFFFD", "caf\u00E9".b => "café",
      "caf\u00E9".encode("ISO-8859-1") => "café", "caf\u00E9".encode("UTF-16LE") => "café"
    }.each { |message, text| expect(logged(message)[:message]).to eq(text) }
    expect(logged({ a: 1 })[:message]).to eq({ a: 1 }.inspect)
  end

  it "has an exception with its backtrace in one object" do
    error = RuntimeError.new("no\n\xFFluck")
    error.set_backtrace(["a.rb:1:in `x'", "b\xFF.rb:2"])
    PitchforkRs::Log.error(logger, "app error", error)
    record = JSON.parse(out.string, symbolize_names: true)
    expect(record).to include(level: "ERROR", message: 'app error: "no\\n\\xFFluck" (RuntimeError)',
                              error: { class: "RuntimeError", message: "no\n\uFFFDluck",
                                       backtrace: ["a.rb:1:in `x'", "b\uFFFD.rb:2"] })
    expect(logged(error)[:error]).to eq(record[:error])
  end

  it "is the default logger's alone: others get lines of text" do
    plain = Logger.new(out, formatter: ->(level, _, _, text) { "#{level} #{text}\n" })
    error = RuntimeError.new("a\tb")
    error.set_backtrace(%w[one two])
    PitchforkRs::Log.error(plain, "app error", error)
    expect(out.string).to eq("ERROR app error: \"a\\tb\" (RuntimeError)\nERROR one\nERROR two\n")
    PitchforkRs::Log.error(plain, "app error", RuntimeError.new("\xFF"))
    expect(out.string).to end_with("ERROR app error: \"\\xFF\" (RuntimeError)\n")
  end
end
