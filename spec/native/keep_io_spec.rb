# frozen_string_literal: true

require "pitchfork_rs"
require "support/server"

RSpec.describe "PitchforkRs::Info" do
  let(:info) { PitchforkRs::Info }

  it "takes IOs to keep, one or several" do
    expect(info.keep_io($stderr)).to equal($stderr)
    expect(info.keep_ios([$stdout, $stderr])).to eq([$stdout, $stderr])
  end

  it "says what to do on a Ruby that cannot close all IOs" do
    skip "this one can" if PitchforkRs::Compatibility.reliable_weak_tables?
    expect { info.close_all_ios! }.to raise_error(
      NoMethodError, %r{\Aclose_all_ios! needs Ruby 3\.2\.3.*#{RUBY_VERSION}.*bugs/?.*19531.*close the connections}
    )
  end

  it "closes all IOs in a mold and its workers, but for the server's own and those that are kept", :server do
    skip "this Ruby cannot" unless PitchforkRs::Compatibility.reliable_weak_tables?
    server = start(<<~RUBY, ready: false, listen: "unix:a.sock", config: <<~CONFIG)
      run ->(_env) { [200, {}, [[$other.closed?, $kept.closed?].join(" ")]] }
    RUBY
      logger Logger.new("app.log", progname: "[Pitchfork]")
      $other = File.open("other", "w")
      $kept = Pitchfork::Info.keep_io(File.open("kept", "w"))
      after_mold_fork { |_, _| Pitchfork::Info.close_all_ios! }
      after_worker_fork { |_, _| Pitchfork::Info.close_all_ios! }
    CONFIG
    wait_until("listening") { server.read("app.log").include?("listening on addr=") }
    server.wait_for_workers(1)
    expect(server.exchange(ServerExamples::GET, server.path("a.sock")).body).to eq("true false")
    server.stop
    expect(server.read("app.log")).to include("worker=0 gen=0").and include("exiting")
  end
end
