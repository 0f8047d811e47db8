# frozen_string_literal: true

require "support/in_process"

RSpec.describe PitchforkRs::Info, :in_process, :gc_stress do
  describe "outside of any server" do
    it "knows of no workers" do
      expect(stressed { [described_class.workers_count, described_class.live_workers_count] }).to eq([0, 0])
    end

    it "knows of no connections" do
      expect(stressed { described_class.connections })
        .to eq(idle: 0, reading: 0, ready: 0, writing: 0, handed_over: 0, refused: 0, closed_by_deadline: 0)
        .and(be_frozen)
    end

    it "is not shutting down" do
      expect(stressed { described_class.shutting_down? }).to be(false)
    end

    it "remembers that this process is not to be forked" do
      child = fork do
        before = described_class.fork_safe?
        stressed { described_class.no_longer_fork_safe! }
        exit!(before && !described_class.fork_safe? ? 0 : 1)
      end
      expect(Process.wait2(child).last).to be_success
    end
  end

  it "goes by the name that applications know" do
    expect(Pitchfork::Info).to equal(described_class)
  end
end
