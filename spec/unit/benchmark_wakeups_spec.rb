# frozen_string_literal: true

require_relative "../../benchmark/lib/wakeups/switches"

RSpec.describe Wakeups::Switches do
  def status(state) = "Name:\tx\nState:\t#{state}\nnonvoluntary_ctxt_switches:\t3\nvoluntary_ctxt_switches:\t12\n"

  it "reads how often a thread went to sleep of its own accord" do
    expect(described_class.parse(status("S (sleeping)"))).to have_attributes(asleep: true, switches: 12)
    expect(described_class.parse(status("R (running)"))).to have_attributes(asleep: false, switches: 12)
  end

  it "has no number for a process that is not asleep" do
    expect(described_class.of([Process.pid])).to be_nil
  end

  it "knows workers by the titles that servers give them" do
    titles = ["pitchfork-rs (gen:0) worker[3] - requests: 0, waiting", "unicorn worker[11] -c config.rb",
              "puma: cluster worker 3: 1234 [app]"]
    others = ["pitchfork-rs (gen:0) mold - ready", "pitchfork-rs monitor", "unicorn master", "puma 5.6.5 (tcp) [app]"]
    expect(titles).to all(match(described_class::WORKER))
    expect(others.grep(described_class::WORKER)).to be_empty
  end
end
