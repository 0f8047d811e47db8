# frozen_string_literal: true

require "support/in_process"

RSpec.describe PitchforkRs::MemInfo, :in_process, :gc_stress do
  let(:own) { stressed { described_class.new(Process.pid) } }

  it "reads what a process holds, in kilobytes" do
    resident = File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
    expect(own.rss).to be_within(resident / 2).of(resident)
    expect(own.pss).to be_between(1, own.rss)
    expect(own.shared_memory).to be_between(0, own.rss)
    expect(own.private_dirty).to be_between(1, own.rss)
  end

  it "tells how much of its parent's memory a process shares, in percent" do
    reader, writer = IO.pipe
    child = fork do
      writer.close
      reader.read
      exit!
    end
    sharing = stressed { described_class.new(child).cow_efficiency(own) }
    expect(sharing).to be_between(20.0, 100.0)
  ensure
    writer.close
    Process.wait(child)
  end

  # More than 32 MiB: malloc maps this anew each time, and never takes it from memory that earlier examples left behind.
  it "can be read anew" do
    GC.start
    before = own.rss
    ballast = "x" * 40_000_000
    expect(stressed { own.update }).to equal(own)
    expect(own.rss).to be > before + 30_000
    expect(ballast.size).to eq(40_000_000)
  end

  it "raises the system's error for a process that is not there" do
    child = fork { exit! }
    Process.wait(child)
    expect { stressed { described_class.new(child) } }.to raise_error(SystemCallError, /#{child}/)
  end

  it "takes a pid as text, as it stands in /proc" do
    expect(stressed { described_class.new(Process.pid.to_s) }.rss).to be_within(own.rss / 2).of(own.rss)
  end

  it "refuses what is no pid" do
    expect { stressed { described_class.new(nil) } }.to raise_error(TypeError)
    refused = 'got "one", wanted the pid of a process'
    expect { stressed { described_class.new("one") } }.to raise_error(ArgumentError, refused)
  end
end
