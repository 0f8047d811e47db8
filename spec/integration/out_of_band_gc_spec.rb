# frozen_string_literal: true

require "support/server"

RSpec.describe "oob_gc", :server do
  # Answers with the collections during this request, all and major ones, with those between the last one and this, and
  # with whether Ruby may make major ones.
  let(:rackup) { <<~'RUBY' }
    COUNTS = -> { GC.stat.values_at(:count, :major_gc_count) }
    MARKS = -> { GC.respond_to?(:config) ? GC.config[:rgengc_allow_full_mark] : "always" }
    WORK = { "/light" => -> {}, "/heavy" => -> { Array.new(2_000) { |i| "string #{i}" } },
             "/keep" => -> { KEPT << Array.new(30_000) { |i| "string #{i}" } },
             "/wait" => -> { File.open("gate", "r+", &:gets) && GC.start }, "/collect" => -> { GC.start },
             "/fork" => -> { Process.wait(fork { File.write("child", MARKS.call) }) } }
    KEPT = []
    LAST = []
    run lambda { |env|
      began = COUNTS.call
      WORK.fetch(env["PATH_INFO"]).call
      ended = COUNTS.call
      counts = [began, *LAST].transpose.flat_map { |now, before = now| now - before }
      LAST.replace([ended])
      [200, {}, [[*ended.zip(began).map { |now, before| now - before }, *counts, MARKS.call].join(" ")]]
    }
  RUBY
  let(:optional) { GC.respond_to?(:config) }

  # How many collections there were during requests, and how many between them: all, and major ones.
  def counts(answers)
    rows = answers.map { |answer| answer.split.first(4).map(&:to_i) }
    rows.transpose.map(&:sum).each_slice(2).map { |all, major| { all: all, major: major } }
  end

  def ask(server, path, times)
    Array.new(times) do
      # Who has just answered may still be about to look around.
      wait_until("the worker") { server.worker.idle? }
      server.get(path).body
    end
  end

  # Then there is room for some hundred more without a collection of Ruby's own.
  def ask_light(server, times)
    ask(server, "/light", times - 1)
    ask(server, "/collect", 1)
  end

  it "keeps collections away from requests" do
    server = start(rackup, config: "oob_gc true")
    ask(server, "/heavy", 5)
    during, between = counts(ask(server, "/heavy", 60))
    expect(between[:all]).to be > 3
    expect(during[:all]).to be <= 1
  end

  it "is off by default: then Ruby collects when it wants to" do
    server = start(rackup)
    ask(server, "/heavy", 5)
    answers = ask(server, "/heavy", 60)
    during, between = counts(answers)
    expect(during[:all]).to be > 3
    expect(between[:all]).to be < during[:all] / 2
    expect(answers.last).to end_with(optional ? "true" : "always")
  end

  it "makes none if little is allocated" do
    server = start(rackup, config: "oob_gc true")
    ask_light(server, 5)
    expect(counts(ask(server, "/light", 20)).map { |count| count[:all] }).to eq([0, 0])
  end

  it "makes one after so many requests if they are limited" do
    server = start(rackup, config: "oob_gc every: 4")
    ask_light(server, 5)
    during, between = counts(ask(server, "/light", 20))
    expect([during[:all], between[:all]]).to eq([0, 5])
  end

  it "does not wait for a pause for ever" do
    server = start(rackup, config: "oob_gc every: 4")
    waiting = Thread.new { server.get("/wait") }
    wait_until("the request in hand") { server.worker.status&.include?("processing: /wait") }
    sockets = Array.new(120) { server.connect.tap { |socket| socket.write(ServerExamples::GET.sub("/", "/light")) } }
    server.open_gate
    waiting.join
    rows = sockets.map { |socket| RawResponse.parse(socket.read).body }
    # Ruby may count two for the one.
    each = rows.map { |row| counts([row]) }
    expect(each.map { |during, _| during[:all] }.sum).to eq(0)
    expect(each.count { |_, between| between[:all].positive? }).to eq(1)
  ensure
    sockets&.each(&:close)
  end

  describe "on a Ruby that can do without major collections" do
    before { skip "Ruby #{RUBY_VERSION} cannot" unless optional }

    it "makes them between requests only" do
      counted = ["oob_gc true", ""].map { |config| counts(ask(start(rackup, config: config), "/keep", 20)) }
      (during, between), (usual,) = counted
      expect([during[:major], usual[:major]]).to match([0, be_positive])
      expect(between[:major]).to be_positive
    end

    it "forbids them to workers, of later generations too, and to nobody else" do
      server = start(rackup, config: <<~RUBY)
        oob_gc true
        after_mold_fork { |_, mold| File.write("mold\#{mold.generation}", GC.config[:rgengc_allow_full_mark].to_s) }
        before_worker_exit { |_, worker| File.write("exit\#{worker.generation}", GC.config[:rgengc_allow_full_mark].to_s) }
      RUBY
      answers = ask(server, "/light", 1)
      server.signal(:USR2)
      server.wait_for_workers(1, generation: 1)
      answers += ask(server, "/light", 1)
      expect(answers).to all(end_with("false"))
      expect(%w[mold0 mold1 exit0].map { |name| server.read(name) }).to eq(%w[true true true])
    end

    it "allows them to processes that the application forks" do
      server = start(rackup, config: "oob_gc true")
      expect(ask(server, "/fork", 1)).to all(end_with("false"))
      expect(server.read("child")).to eq("true")
    end
  end
end
