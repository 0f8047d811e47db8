# frozen_string_literal: true

require "logger"
require "stringio"
require "pitchfork_rs/fork_lock"
require "support/waiting"

RSpec.describe PitchforkRs::ForkLock do
  include Waiting

  let(:log) { StringIO.new }
  let(:go) { Queue.new }

  after { described_class.release }

  def acquire(limit) = described_class.acquire(Logger.new(log), "worker=0", limit)

  def wait_until_asleep(thread) = wait_until("a thread that waits", seconds: 5) { thread.status == "sleep" }

  # A thread that holds the lock; then it runs the block, still holding.
  def holder
    held = Queue.new
    thread = Thread.new do
      described_class.hold do
        held << true
        yield
      end
    end
    held.pop
    thread
  end

  it "gives back what the block does, and is free again also when that raises" do
    expect(described_class.hold { :result }).to eq(:result)
    expect { described_class.hold { raise "no luck" } }.to raise_error("no luck")
    expect(acquire(0.05)).to be(true)
  end

  it "lets nobody in from the moment a fork is wanted until it is made" do
    acquire(5)
    late = Thread.new { described_class.hold { :in } }
    wait_until_asleep(late)
    described_class.release
    expect(late.value).to eq(:in)
  end

  it "lets those in again who hold it already, so that the fork comes to its turn" do
    thread = holder { go.pop && described_class.hold { :nested } }
    forker = Thread.new { acquire(5) }
    wait_until_asleep(forker)
    go << true
    expect([thread.value, forker.value]).to eq([:nested, true])
  end

  it "is held until the outermost block is left" do
    thread = holder do
      described_class.hold { nil }
      go.pop
    end
    wait_until_asleep(thread)
    expect(acquire(0.05)).to be(false)
    go << true
    thread.join
    expect(acquire(0.05)).to be(true)
  end

  it "gives a fork up in time, names who held it, and lets everybody in again" do
    thread = holder { go.pop }
    began = now
    expect(acquire(1.1)).to be(false)
    expect(now - began).to be_between(1.1, 1.9)
    expect(log.string).to match(/WARN .*worker=0 waits to fork: prevent_fork has been held for a second by #<Thread/)
      .and match(/ERROR .*worker=0 gives up its fork: prevent_fork was not left within 1.1 seconds by #<Thread/)
    late = Thread.new { described_class.hold { :in } }
    expect(late.join(5)&.value).to eq(:in)
    go << true
    thread.join
  end
end
