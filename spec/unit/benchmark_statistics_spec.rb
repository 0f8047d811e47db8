# frozen_string_literal: true

require_relative "../../benchmark/lib/run/statistics"

RSpec.describe Run::Spread do
  it "has the middle one of an odd number of values" do
    expect(described_class.of([9, 1, 5]).to_a).to eq([5, 1, 9])
  end

  it "has the mean of the two middle ones of an even number" do
    expect(described_class.of([4, 1, 3, 10]).to_a).to eq([3.5, 1, 10])
  end

  it "compares values with those of the same round" do
    spread = described_class.of_ratios([50, 20, 90], [100, 20, 100])
    expect(spread.to_a).to eq([0.9, 0.5, 1.0])
  end

  it "leaves out rounds that cannot be compared" do
    expect(described_class.of_ratios([50, nil, 90, 5], [100, 20, 0, nil]).to_a).to eq([0.5, 0.5, 0.5])
  end

  it "is nothing where no round can be compared" do
    expect(described_class.of_ratios([50], [])).to be_nil
  end
end
