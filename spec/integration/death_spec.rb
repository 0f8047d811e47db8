# frozen_string_literal: true

require "support/server"

RSpec.describe "the death", :server do
  describe "of a worker" do
    it "is made good under the same number" do
      server = start(workers: 3)
      pids = server.workers.map(&:pid)
      server.signal(:KILL, to: pids[1])
      server.alive_until("a successor") do
        # One look for both: between two of them a worker may die.
        idle = server.idle_workers.map(&:pid)
        idle.size == 3 && !idle.include?(pids[1])
      end
      expect(server.workers.map(&:generation)).to eq([0, 0, 0])
      expect(server.workers.map(&:pid).values_at(0, 2)).to eq(pids.values_at(0, 2))
      status = "#<Process::Status: pid #{pids[1]} SIGKILL"
      expect(server.log).to match(/ERROR .*worker=1 gen=0 pid=#{pids[1]} reaped \(#{status}/)
    end

    it "costs the others nothing when all of them die at once" do
      server = start(workers: 4)
      pids = server.workers.map(&:pid)
      pids.each { |pid| server.signal(:KILL, to: pid) }
      server.alive_until("four successors") do
        idle = server.idle_workers.map(&:pid)
        idle.size == 4 && (idle & pids).empty?
      end
      expect(server.get.body).to eq("hello")
    end
  end

  describe "of the mold" do
    let(:rackup) { <<~'RUBY' }
      File.write("loads", "#{Process.pid}\n", mode: "a")
      run lambda { |env|
        Pitchfork::Info.no_longer_fork_safe! if env["PATH_INFO"] == "/unsafe"
        [200, {}, ["fine"]]
      }
    RUBY

    it "makes a worker the next one, without loading the application again" do
      server = start(rackup, workers: 2)
      server.signal(:KILL, to: server.mold.pid)
      server.wait_for_workers(2, generation: 1)
      server.alive_until("one mold") { server.children.size == 3 && server.mold.generation == 1 }
      expect([server.lines("loads").size, server.get.body]).to eq([1, "fine"])
    end

    it "leads to a fresh boot when no worker is safe to fork, and serving goes on" do
      server = start(rackup)
      server.get("/unsafe")
      mold = server.mold.pid
      server.signal(:KILL, to: mold)
      expect(server.get.body).to eq("fine")
      server.alive_until("another mold") { ![nil, mold].include?(server.mold&.pid) }
      server.wait_for_log(/worker=0 gen=0 pid=\d+ ready/, count: 2)
      server.wait_for_workers(1)
      expect([server.lines("loads").size, server.get.body]).to eq([2, "fine"])
    end

    it "while a refork is under way ends in one mold and all workers" do
      server = start(rackup, workers: 2, config: ServerExamples::SLOW_REFORK)
      server.signal(:USR2)
      server.wait_for_log(/mold gen=1 pid=\d+ registered/)
      server.signal(:KILL, to: server.mold.pid)
      server.wait_for_log(/mold gen=0 pid=\d+ reaped/)
      server.open_gate
      server.wait_for_workers(2, generation: 1)
      expect([server.children.size, server.lines("loads").size]).to eq([3, 1])
    end

    it "that is on its way in leaves the old one in its place" do
      server = start(rackup, workers: 2, config: ServerExamples::SLOW_REFORK)
      pids = server.children.map(&:pid)
      server.signal(:USR2)
      server.wait_for_log(/mold gen=1 pid=\d+ registered/)
      server.signal(:KILL, to: server.log[/mold gen=1 pid=(\d+) registered/, 1].to_i)
      server.wait_for_log(/mold gen=1 pid=\d+ reaped/)
      expect(server.children.map(&:pid)).to match_array(pids)
    end
  end

  describe "of a boot" do
    { "an exception" => ["raise 'no luck'", "no luck (RuntimeError)"],
      "a mistake in the file" => ["run ->(_env) { ]", "SyntaxError"],
      "a missing library" => ["require 'no/such/library'", "cannot load such file -- no/such/library (LoadError)"] }
      .each do |what, (rackup, message)|
      it "by #{what} ends the server with status 1, and says why" do
        server = start(rackup, ready: false)
        expect(server.wait_for_end.exitstatus).to eq(1)
        expect(server.log.lines.grep(/#{Regexp.escape(message)}/).size).to eq(1)
        expect(server.log).to match(/ config\.ru:1:in /) unless message == "SyntaxError"
        expect(server.log.lines.last).to eq("pitchfork-rs: the application could not be loaded, see the log\n")
        expect(server.processes).to be_empty
      end
    end

    it "by exit ends the server with status 1" do
      server = start("exit", ready: false)
      expect(server.wait_for_end.exitstatus).to eq(1)
    end
  end

  describe "of the monitor" do
    it "ends everybody within five seconds, whatever they are busy with" do
      server = start("run ->(env) { loop { } if env['PATH_INFO'] == '/endless'; [200, {}, []] }", workers: 3)
      socket = server.connect
      socket.write("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
      wait_until("a busy worker") { server.workers.any? { |worker| worker.status.include?("processing: /endless") } }
      server.stop(:KILL)
      wait_until("the end of everybody", seconds: 6) { server.processes.empty? }
    ensure
      socket&.close
    end

    it "ends a mold that is still booting" do
      server = start(ServerExamples::SLOW_BOOT, ready: false)
      server.alive_until("the boot") { server.children.any? { |child| child.status == "booting" } }
      server.stop(:KILL)
      wait_until("the end of everybody", seconds: 6) { server.processes.empty? }
    end
  end

  describe "of a monitor whose mold is inside a hook" do
    it "ends the mold as well" do
      server = start(workers: 1, config: "before_fork { |_| File.exist?('hang') && (File.write('hung', ''); sleep) }")
      server.write("hang", "")
      server.signal(:KILL, to: server.worker.pid)
      server.alive_until("a mold in its hook") { File.exist?(server.path("hung")) }
      server.stop(:KILL)
      wait_until("the end of everybody", seconds: 6) { server.processes.empty? }
    end
  end

  describe "of processes that nobody waits for" do
    it "is tidied up by the monitor, of all of them at once" do
      orphan = "Process.wait(fork { fork { exit! }; exit! })"
      server = start("run ->(_) { 20.times { #{orphan} }; [200, {}, []] }")
      server.get
      server.alive_until("the end of the last one") do
        server.log.scan("reaped unknown subprocess").size == 20
      end
      expect(server.get.code).to eq("200")
    end
  end

  describe "of the process between a mold and its worker" do
    # Holds the process in the middle of the first spawn, before or after it forks.
    def holding(moment)
      <<~RUBY
        module Holding
          def self.depth = @depth ||= 0
          def self.depth=(depth)
            @depth = depth
          end

          def _fork
            hold if #{moment == :before}
            child = super
            child.zero? ? Holding.depth += 1 : (hold if #{moment == :after})
            child
          end

          # Monitor, mold, middle: it is the middle that was forked twice.
          def hold
            return unless Holding.depth == 2 && !File.exist?("middle")

            File.write("middle", Process.pid.to_s)
            sleep
          end
        end
        Process.singleton_class.prepend(Holding)
      RUBY
    end

    %i[before after].each do |moment|
      it "is noticed, and the worker is spawned again, if it dies #{moment} it has forked" do
        server = start(config: holding(moment), ready: false)
        server.alive_until("the middle") { server.read("middle").match?(/\A\d+\z/) }
        server.signal(:KILL, to: server.read("middle").to_i)
        server.wait_for_log(/mold gen=0 pid=\d+ failed to spawn a worker, retrying/)
        server.wait_until_ready
        server.alive_until("nobody else") { server.processes.size == 3 }
        expect(server.get.body).to eq("hello")
        expect(server.children.map(&:title)).to match([/mold - ready/, /worker\[0\]/])
      end
    end

    # Lets the processes in the middle of these spawns, counted from 1, end without having forked.
    def breaking(spawns)
      <<~RUBY
        module Breaking
          def self.depth = @depth ||= 0
          def self.depth=(depth)
            @depth = depth
          end

          def _fork
            if Breaking.depth == 2
              File.write("middles", "\n", mode: "a")
              exit!(1) if #{spawns}.include?(File.size("middles"))
            end
            super.tap { |child| Breaking.depth += 1 if child.zero? }
          end
        end
        Process.singleton_class.prepend(Breaking)
      RUBY
    end

    it "ends the mold when it happens twice in a row" do
      server = start(config: breaking([1, 2]), ready: false)
      server.wait_until_ready
      mold = server.log[/FATAL .* mold gen=0 pid=(\d+) failed to spawn a worker twice in a row - corrupted mold/, 1]
      expect(server.log).to match(/ERROR .* mold gen=0 pid=#{mold} reaped \(.*exit 1>\)/)
      expect(server.mold.pid.to_s).not_to eq(mold)
    end

    it "is no reason to end the mold when a spawn went well in between" do
      server = start(config: breaking([1, 3]))
      mold = server.mold.pid
      server.signal(:KILL, to: server.worker.pid)
      server.wait_for_log(/mold gen=0 pid=#{mold} failed to spawn a worker, retrying/, count: 2)
      server.wait_for_log(/worker=0 gen=0 pid=\d+ ready/, count: 2)
      expect(server.mold.pid).to eq(mold)
    end
  end
end
