# frozen_string_literal: true

require_relative "../../benchmark/lib/instructions/record"

RSpec.describe Instructions::Record, :in_tmpdir do
  subject(:record) { described_class.new("instructions.yml") }

  let(:here) { "ruby 9.9.9, x86_64-linux, glibc 9.99" }

  before { described_class.new("instructions.yml").write(here, 1000) }

  it "accepts what differs by up to 5 %" do
    expect(record.verdict(here, 1050)).to have_attributes(ok: true, text: /\A\+5\.0 % against the 1000/)
    expect(record.verdict(here, 950)).to have_attributes(ok: true, text: /\A-5\.0 %/)
  end

  it "refuses more" do
    expect(record.verdict(here, 1051)).to have_attributes(ok: false, text: /\A\+5\.1 % .*: more than 5 %/)
  end

  it "wants an improvement to be recorded" do
    expect(record.verdict(here, 949)).to have_attributes(ok: true, text: /--record keeps it so/)
  end

  it "accepts what was never counted here, and says so" do
    expect(record.verdict("ruby 1.8", 1)).to have_attributes(ok: true, text: /\Anothing is recorded for ruby 1\.8/)
    expect(described_class.new("nowhere.yml").verdict(here, 1)).to have_attributes(ok: true)
  end

  it "keeps what was recorded for others" do
    record.write("ruby 1.8", 7)
    again = described_class.new("instructions.yml")
    expect([again.verdict("ruby 1.8", 8).ok, again.verdict(here, 1000).ok, again.verdict(here, 2000).ok])
      .to eq([false, true, false])
  end

  it "names what changes the count" do
    expect(described_class.combination).to match(/\Aruby #{RUBY_VERSION}, #{RUBY_PLATFORM}, (glibc [\d.]+|musl)\z/)
  end
end
