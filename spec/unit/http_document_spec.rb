# frozen_string_literal: true

require "support/corpus/document"

RSpec.describe Corpus::Document do
  it "is what docs/HTTP.md holds (write it with: rake docs:http)" do
    expect(File.read(File.expand_path("../../docs/HTTP.md", __dir__))).to eq(described_class.new.to_s)
  end

  it "shows bytes in one line, without losing any" do
    expect(described_class.readable("a\r\n\t\0\\\xFF|")).to eq('a\r\n\t\0\\\\\xff|')
    expect(described_class.readable("x#{"ab" * 40}y")).to eq("x(ab){40}y")
    expect(described_class.readable("x" * 40)).to eq("x{40}")
  end

  it "keeps a table's cell in one piece" do
    expect([described_class.code("a|b"), described_class.code("a`b")]).to eq(['`a\|b`', "`` a`b ``"])
  end
end
