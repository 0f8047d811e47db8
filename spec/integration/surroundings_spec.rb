# frozen_string_literal: true

require "support/server"

RSpec.describe "a server under test", :server do
  it "runs with the Ruby options of the test, and no others" do
    server = start("run ->(_env) { [200, {}, [ENV.fetch('RUBYOPT', '').strip]] }")
    expect(server.get.body).to eq(ENV.fetch("PITCHFORK_RS_RUBYOPT", "").strip)
  end
end
