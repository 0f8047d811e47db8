# frozen_string_literal: true

require "logger"
require "stringio"
require "pitchfork_rs/refork_condition"

RSpec.describe PitchforkRs::ReforkCondition do
  let(:log) { StringIO.new }
  let(:logger) { Logger.new(log) }

  def worker(generation, requests)
    Struct.new(:generation, :requests_count, :to_log).new(generation, requests, "worker=0 gen=#{generation} pid=1")
  end

  def at(seconds)
    allow(Process).to receive(:clock_gettime).with(Process::CLOCK_MONOTONIC).and_return(seconds)
  end

  it "waits ten seconds between attempts unless told otherwise" do
    expect(described_class.backoff_delay).to eq(10.0)
  end

  describe PitchforkRs::ReforkCondition::RequestsCount do
    it "is met at the limit of the worker's generation" do
      condition = described_class.new([10, 20])
      answers = [[0, 9], [0, 10], [0, 11], [1, 10], [1, 19], [1, 20]].map { |it| condition.met?(worker(*it), logger) }
      expect(answers).to eq([false, true, true, false, false, true])
    end

    it "repeats the last limit for later generations" do
      condition = described_class.new([10, 20])
      expect([19, 20].map { |count| condition.met?(worker(7, count), logger) }).to eq([false, true])
    end

    it "is never met where the limit is false or nil" do
      condition = described_class.new([nil, 5, false])
      expect([0, 2, 3].map { |generation| condition.met?(worker(generation, 1_000_000), logger) }).to all(be(false))
      expect(condition.met?(worker(1, 5), logger)).to be(true)
    end

    it "is never met without limits" do
      expect(described_class.new([]).met?(worker(0, 1_000_000), logger)).to be(false)
    end

    it "logs when it is met, and only then" do
      condition = described_class.new([10])
      condition.met?(worker(0, 9), logger)
      expect(log.string).to be_empty
      condition.met?(worker(0, 12), logger)
      expect(log.string).to match(/ INFO .*: worker=0 gen=0 pid=1 processed 12 requests, triggering a refork$/)
    end

    it "is silently unmet until the back-off ends" do
      condition = described_class.new([10])
      at(100.0)
      condition.backoff!(2)
      answers = [100.0, 101.9, 102.0].map do |time|
        at(time)
        [condition.met?(worker(0, 10), logger), log.string.lines.size]
      end
      expect(answers).to eq([[false, 0], [false, 0], [true, 1]])
    end

    it "backs off for the module's delay by default" do
      condition = described_class.new([10])
      allow(PitchforkRs::ReforkCondition).to receive(:backoff_delay).and_return(3.0)
      at(50.0)
      condition.backoff!
      at(52.9)
      expect(condition.backoff?).to be(true)
      at(53.0)
      expect(condition.backoff?).to be(false)
    end

    it "can be narrowed in a subclass" do
      condition = Class.new(described_class) { def met?(worker, logger) = worker.generation.zero? && super }.new([10])
      answers = [worker(0, 9), worker(0, 10), worker(1, 10)].map { |candidate| condition.met?(candidate, logger) }
      expect(answers).to eq([false, true, false])
    end

    it "keeps its limits when the Array it was given changes" do
      limits = [10]
      condition = described_class.new(limits)
      limits.clear
      expect(condition.met?(worker(0, 10), logger)).to be(true)
    end

    it "refuses limits that are no Array" do
      expect { described_class.new(10) }.to raise_error(ArgumentError, /Array, got 10/)
    end
  end
end
