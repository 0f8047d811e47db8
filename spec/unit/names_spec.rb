# frozen_string_literal: true

require "open3"
require "pitchfork_rs"
require "rbconfig"
require "support/surroundings"

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

  it "has loaded what its users' files take for granted" do
    library = File.expand_path("../../lib", __dir__)
    code = 'require "pitchfork_rs"; p Etc.nprocessors, FileUtils, Dir.tmpdir, Tempfile, StringIO, IO.new(0).wait(0)'
    out, err, status = Open3.capture3(Surroundings::ENVIRONMENT, RbConfig.ruby, "-I#{library}", "-e", code)
    expect([err, status.exitstatus, out.lines.size]).to eq(["", 0, 6])
  end

  it "tells the time of a clock that is never set" do
    before = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    times = [described_class.time_now, described_class.time_now(true)]
    after = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    expect(times).to match([a_kind_of(Float).and(be_between(before, after)),
                            a_kind_of(Integer).and(be_between(before.floor, after.floor))])
  end
end
