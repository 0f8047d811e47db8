# frozen_string_literal: true

require "support/in_process"

RSpec.describe PitchforkRs::MemInfo, :in_process, :gc_stress do
  # Another process, which holds the same memory until it is told to take more: this one may collect at any time.
  let(:program) { <<~RUBY }
    GC.disable
    $stdout.sync = true
    puts "ready"
    if (size = gets)
      ballast = "x" * Integer(size)
      puts ballast.size
      gets
    end
  RUBY
  let(:other) { IO.popen([RbConfig.ruby, "-e", program], "r+").tap(&:gets) }
  let(:info) { stressed { described_class.new(other.pid) } }

  after { other.close }

  it "reads what a process holds, in kilobytes" do
    resident = File.read("/proc/#{other.pid}/status")[/VmRSS:\s+(\d+)/, 1].to_i
    # The kernel counts those of each processor for some time before it adds them up.
    expect(info.rss).to be_within(resident / 10).of(resident)
    expect(info.pss).to be_between(1, info.rss)
    expect(info.shared_memory).to be_between(0, info.rss)
    expect(info.private_dirty).to be_between(1, info.rss)
  end

  it "tells how much of its parent's memory a process shares, in percent" do
    reader, writer = IO.pipe
    child = fork do
      writer.close
      reader.read
      exit!
    end
    sharing = stressed { described_class.new(child).cow_efficiency(described_class.new(Process.pid)) }
    expect(sharing).to be_between(20.0, 100.0)
  ensure
    writer.close
    Process.wait(child)
  end

  it "can be read anew" do
    before = info.rss
    other.puts(40_000_000)
    other.gets
    expect(stressed { info.update }).to equal(info)
    expect(info.rss).to be_within(1_000).of(before + 39_063)
  end

  it "raises the system's error for a process that is not there" do
    child = fork { exit! }
    Process.wait(child)
    expect { stressed { described_class.new(child) } }.to raise_error(SystemCallError, /#{child}/)
  end

  it "takes a pid as text, as it stands in /proc" do
    expect(stressed { described_class.new(other.pid.to_s) }.rss).to be_within(1_000).of(info.rss)
  end

  it "refuses what is no pid" do
    expect { stressed { described_class.new(nil) } }.to raise_error(TypeError)
    refused = 'got "one", wanted the pid of a process'
    expect { stressed { described_class.new("one") } }.to raise_error(ArgumentError, refused)
  end
end
