# frozen_string_literal: true

require "pitchfork_rs"
require "rbconfig"

RSpec.describe PitchforkRs do
  it "has the names that applications use" do
    expect([described_class::VERSION, described_class::REFORKING_AVAILABLE]).to match([/\A\d+\.\d+\.\d+\z/, true])
    ancestors = %i[ClientShutdown HttpParserError BootFailure ForkFailure].to_h do |name|
      [name, described_class.const_get(name).superclass]
    end
    expect(ancestors).to eq(ClientShutdown: EOFError, HttpParserError: StandardError, BootFailure: StandardError,
                            ForkFailure: StandardError)
    expect(Pitchfork).to equal(described_class)
  end

  it "can be required by the name of its gem" do
    library = File.expand_path("../../lib", __dir__)
    code = 'require "pitchfork-rs"; print PitchforkRs::VERSION'
    expect(IO.popen([RbConfig.ruby, "-I#{library}", "-e", code], &:read)).to eq(described_class::VERSION)
  end

  it "tells the time of a clock that is never set" do
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    times = [described_class.time_now, described_class.time_now(true)]
    after = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    expect(times).to match([a_kind_of(Float).and(be_between(before, after)),
                            a_kind_of(Integer).and(be_between(before.floor, after.floor))])
  end
end
