# frozen_string_literal: true

require "support/server"

RSpec.describe "Process.warmup", :server do
  # Defined here, so that the example also counts with Rubies that have none of their own.
  it "is called once in each mold that prepares, and in nobody else" do
    server = start(<<~RUBY, workers: 2)
      def Process.warmup = File.write("warmups", "\#{Process.pid}\\n", mode: "a")
      #{ServerExamples::HELLO}
    RUBY
    molds = [server.mold.pid.to_s]
    expect(server.lines("warmups")).to eq(molds)
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    server.alive_until("the old mold's end") { server.children.one?(&:mold?) }
    expect(server.lines("warmups")).to eq([*molds, server.mold.pid.to_s])
  end
end
