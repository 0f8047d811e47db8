# frozen_string_literal: true

require "support/server"

RSpec.describe "queues", :server do
  let(:app) { <<~RUBY }
    run lambda { |env|
      #{ServerExamples::AT_GATE} if env["PATH_INFO"] == "/wait"
      [200, {}, [env["pitchfork.worker"].nr.to_s]]
    }
  RUBY

  def start_with(options, workers: 4, config: "", app: self.app)
    server = start(app, listen: [], workers: workers, config: "listen '127.0.0.1:0', #{options}\n#{config}")
    server.alive_until("listening") { server.addresses.any? }
    server
  end

  def queues(server) = server.log.scan(/listening on addr=\S+ fd=(\d+)/).flatten.map(&:to_i)

  # Who serves what, by the numbers of workers and queues.
  def shares(server)
    fds = queues(server)
    server.workers.to_h { |worker| [worker.nr, server.watched_by(worker.pid).map { |fd| fds.index(fd) }.sort] }
  end

  # The kernel picks a queue for each connection by its port: after so many of them every queue had some.
  def expect_all_served(server)
    answers = Array.new(40) { Thread.new { server.get.body } }.map(&:value)
    expect(answers.size).to eq(40)
    answers
  end

  it "are said, the further ones as such, and share the backlog" do
    server = start_with("queues: 3, backlog: 60")
    expect(server.messages.grep(/listening/)).to match(
      [/\Alistening on addr=127\.0\.0\.1:#{server.port} fd=\d+\z/,
       *[/\Alistening on addr=127\.0\.0\.1:#{server.port} fd=\d+ \(SO_REUSEPORT\)\z/] * 2]
    )
    backlogs = IO.popen(["ss", "-ltnH", "sport = :#{server.port}"], &:readlines).map { |line| line.split[2] }
    expect(backlogs).to eq(%w[20 20 20])
  rescue Errno::ENOENT
    skip "ss is not installed"
  end

  it "are shared out, a row of them to each worker" do
    server = start_with("queues: 4, queues_per_worker: 2")
    server.alive_until("fair shares") { shares(server) == { 0 => [0, 1], 1 => [1, 2], 2 => [2, 3], 3 => [0, 3] } }
    expect(expect_all_served(server).uniq.size).to be > 1
  end

  it "are all but one for each worker by default" do
    server = start_with("queues: 3", workers: 2)
    server.alive_until("fair shares") { shares(server) == { 0 => [0, 1], 1 => [1, 2] } }
  end

  it "are all served by however few there are, as they come and go" do
    server = start_with("queues: 4, queues_per_worker: 1", workers: 1)
    server.alive_until("one for all") { shares(server) == { 0 => [0, 1, 2, 3] } }
    expect_all_served(server)
    server.signal(:TTIN)
    server.alive_until("halves") { shares(server) == { 0 => [0, 2], 1 => [1, 3] } }
    expect_all_served(server)
    [3, 4].each { |count| server.signal(:TTIN) && server.wait_for_workers(count) }
    server.alive_until("quarters") { shares(server) == { 0 => [0], 1 => [1], 2 => [2], 3 => [3] } }
    expect_all_served(server)
    3.times do |round|
      server.signal(:TTOU)
      server.wait_for_workers(3 - round)
    end
    server.alive_until("one for all") { shares(server) == { 0 => [0, 1, 2, 3] } }
    expect_all_served(server)
  end

  it "of a worker that is missing are served by the others, until there is another" do
    server = start_with("queues: 2, queues_per_worker: 1", workers: 2, config: <<~RUBY)
      after_worker_fork { |_, worker| #{ServerExamples::AT_GATE} if File.exist?("hold") && worker.nr == 1 }
    RUBY
    server.alive_until("halves") { shares(server) == { 0 => [0], 1 => [1] } }
    server.write("hold", "")
    server.signal(:KILL, to: server.worker(1).pid)
    server.alive_until("one for all") { shares(server)[0] == [0, 1] }
    expect(expect_all_served(server).uniq).to eq(["0"])
    server.open_gate
    server.alive_until("halves") { shares(server) == { 0 => [0], 1 => [1] } }
    expect(expect_all_served(server).uniq.sort).to eq(%w[0 1])
  end

  it "of a busy worker are emptied by those who leave at a drain" do
    server = start_with("queues: 2, queues_per_worker: 1", workers: 2)
    server.alive_until("halves") { shares(server) == { 0 => [0], 1 => [1] } }
    busy = Thread.new { server.raw("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n") }
    server.alive_until("a busy worker") { server.workers.any? { |one| one.status.include?("processing: /wait") } }
    # Some of them go to the queue of the busy one.
    others = Array.new(20) { server.connect.tap { |socket| socket.write(ServerExamples::GET) } }
    server.signal(:QUIT)
    answers = others.map { |socket| Timeout.timeout(Waiting::PATIENCE) { RawResponse.parse(socket.read).body } }
    server.open_gate
    expect(server.wait_for_end.exitstatus).to eq(0)
    expect(answers.uniq.size).to eq(1)
    expect(RawResponse.parse(busy.value).body).not_to eq(answers.first)
  end

  it "are kept through a refork" do
    server = start_with("queues: 4, queues_per_worker: 1")
    server.signal(:USR2)
    server.wait_for_workers(4, generation: 1)
    server.alive_until("fair shares") { shares(server) == { 0 => [0], 1 => [1], 2 => [2], 3 => [3] } }
    expect_all_served(server)
  end

  it "end with the server" do
    server = start_with("queues: 4")
    expect(server.stop.exitstatus).to eq(0)
    expect { server.connect }.to raise_error(Errno::ECONNREFUSED)
  end
end
