# frozen_string_literal: true

require "support/server"

RSpec.describe "a drain", :server do
  it "ends when the timeouts have, whatever a request does, and costs the others nothing" do
    server = start(<<~'RUBY', workers: 2, config: "timeout 3, cleanup: 2")
      def endless
        sleep
      rescue Exception
        retry
      end

      run ->(env) { endless if env["PATH_INFO"] == "/endless"; [200, {}, ["hello"]] }
    RUBY
    endless = server.connect
    endless.write("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
    server.alive_until("the request") { server.workers.any? { |worker| worker.status.include?("/endless") } }
    began = Waiting.now
    expect(server.get.body).to eq("hello")
    expect(server.stop.exitstatus).to eq(0)
    expect(Waiting.now - began).to be < 5 + 3
    expect(endless.read).to eq("")
    expect(server.messages).to include(/timed out, exiting\z/, /timed out, killing\z/)
  ensure
    endless&.close
  end
end
