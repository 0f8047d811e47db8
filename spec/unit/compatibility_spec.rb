# frozen_string_literal: true

require "support/compatibility"

RSpec.describe Compatibility do
  let(:table) { described_class.new }

  it "names only examples that there are" do
    missing = table.unproven.map { |proof| "#{proof.file}: #{proof.name}" }
    expect(missing).to be_empty, -> { missing.join("\n") }
  end

  it "has no row without an example, and none twice" do
    expect(table.rows.map(&:proofs)).to all(satisfy(&:any?))
    expect(table.rows.map { |row| [row.section, row.text] }.uniq.size).to eq(table.rows.size)
  end

  it "is what docs/compatibility.md holds (write it with: rake docs:compatibility)" do
    expect(File.read(File.expand_path("../../docs/compatibility.md", __dir__))).to eq(table.to_s)
  end
end
