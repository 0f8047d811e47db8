# frozen_string_literal: true

require "support/rails_example"
require "support/rails_guests"

RSpec.describe "The Rails example", :server, skip: RailsExample.obstacle do
  include RailsExample

  # Soon three times. Between before_fork and the fork of a mold the application's thread has time to write once more.
  reforks = <<~RUBY
    refork_after [20, 20, false]
    hook = set[:before_fork]
    before_fork do |server|
      hook.call(server)
      sleep 0.6 if Thread.list.any? { |thread| thread.name == "usage" }
    end
  RUBY

  # Waits until nobody of an older generation is there.
  def wait_for_generation(server, generation, workers)
    server.alive_until("generation #{generation}") do
      found = server.workers
      found.size == workers && [server.mold, *found].compact.map(&:generation).uniq == [generation] && server.mold
    end
  end

  def tallies(server) = query(server, "SELECT name, value FROM tallies").to_h

  # In the middle of a request, so that exactly one client is concerned: one that is told to send its body, and
  # does not. Gives what that one gets.
  def kill_worker(server)
    socket = server.connect
    fields = ["X-Request-Id: victim", "Content-Length: 9", "Expect: 100-continue"].map { |field| "#{field}\r\n" }
    socket.write("POST /entries HTTP/1.1\r\nHost: a\r\n#{fields.join}\r\n")
    expect(socket.readpartial(100)).to eq("HTTP/1.1 100 Continue\r\n\r\n")
    victim = server.alive_until("the victim") { server.workers.find { |one| one.title.include?("victim") } }
    server.signal(:KILL, to: victim.pid)
    server.alive_until("another worker") { (found = server.worker(victim.nr)) && found.pid != victim.pid }
    socket.read
  rescue Errno::ECONNRESET
    ""
  ensure
    socket&.close
  end

  it "loses nothing by reforks, and by a crash and a drain nothing but the request in hand" do
    server = start_rails("-rbundler/setup", "#{Server::ROOT}/exe/pitchfork-rs", "-l", "127.0.0.1:0",
                         workers: 3, config: reforks)
    guests = RailsGuests.new(server.port, 4)
    guests.start
    wait_for_generation(server, 2, 3)
    expect(database_files(server.mold.pid)).to be_empty
    server.signal(:USR2)
    wait_for_generation(server, 3, 3)
    expect(database_files(server.mold.pid)).to be_empty
    wait_until("an answer of each worker") { guests.workers.grep(/gen=3/).size >= 3 || guests.failures.any? }
    guests.stop
    expect(guests.failures).to be_empty

    # No counter was written twice, as a forked buffer would be, and none was lost.
    wait_until("the last counters") { tallies(server)["requests"] == guests.requests }
    expect(guests.workers.map { |worker| worker[/gen=(\d+)/, 1].to_i }.uniq).to match_array(0..3)

    guests.start
    expect(kill_worker(server)).to eq("")
    guests.expect_end
    expect(server.stop).to be_success
    guests.stop
    expect(guests.failures).to be_empty
    expect(tallies(server)).not_to include("failed queries")
    expect(query(server, "SELECT count(*) FROM entries")).to eq([[guests.entries]])
    expect(query(server, "PRAGMA integrity_check")).to eq([["ok"]])
    expect(server.log.lines.grep(/^[EFW], |error|inherited/i)).to match([/reaped \(#<Process::Status: .* SIGKILL/])
  end

  it "runs with rails server, reloads code in development, and ends at INT" do
    server = start_rails("bin/rails", "server", "-u", "pitchfork-rs", "-b", "127.0.0.1", "-p", "0",
                         environment: "development")
    expect(server.get.body).to include("Visits: 1")
    code = server.read("app/controllers/health_controller.rb")
    server.write("app/controllers/health_controller.rb", code.sub("fork_safe:", "may_be_forked:"))
    expect(server.get("/health").body).to include('"may_be_forked":true')
    expect(server.stop(:INT)).to be_success
    expect(server.log).to match(/monitor complete status=0\n.*Exiting\n\z/m)
  end
end
