# frozen_string_literal: true

require "support/server"

# Lines that an operator hopes never to see, and has an alert for.
RSpec.describe "the log", :server do
  it "says so when there is no mold to go on with" do
    server = start("raise 'no luck'", ready: false)
    expect(server.wait_for_end.exitstatus).to eq(1)
    expect(server.messages).to include("No mold alive, shutting down")
  end

  it "says so when a mold cannot fork twice in a row, which is replaced then" do
    server = start(ready: false, config: <<~RUBY)
      # The process between a mold and a worker has been forked twice, and dies before it forks itself.
      module Dying
        @depth = 0
        class << self
          attr_accessor :depth
        end

        def _fork
          exit!(9) if Dying.depth == 2 && (File.write("deaths", "one\\n", mode: "a"); File.readlines("deaths").size < 3)
          super.tap { |child| Dying.depth += 1 if child.zero? }
        end
      end
      Process.singleton_class.prepend(Dying)
    RUBY
    server.wait_until_ready
    expect(server.messages.grep(/\Amold gen=0 pid=(\d+) failed to spawn a worker, retrying\z/).size).to eq(2)
    corrupted = server.messages.grep(/failed to spawn a worker twice in a row - corrupted mold process\?\z/)
    expect(corrupted).to match([/\Amold gen=0 pid=\d+ /])
    expect(server.mold.pid).not_to eq(corrupted.first[/pid=(\d+)/, 1].to_i)
    expect(server.get.body).to eq("hello")
  end
end
