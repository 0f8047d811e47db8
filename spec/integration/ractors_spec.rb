# frozen_string_literal: true

require "support/server"

# Every process is forked from another, and a fork leaves one thread of one Ractor.
RSpec.describe "Ractors", :server do
  let(:quiet) { "Warning[:experimental] = false" }
  let(:value) { Ractor.method_defined?(:value) ? "value" : "take" }

  # They compute while requests are served, collect garbage in all Ractors, and are gone when a process is forked.
  it "may be started by each request, also after reforks" do
    server = start(<<~RUBY, workers: 2, config: quiet)
      run lambda { |_env|
        ractors = Array.new(2) { |n| Ractor.new(n) { |m| Array.new(20_000) { |i| (i * m).to_s }.last } }
        GC.start
        [200, {}, [ractors.map(&:#{value}).join(" ")]]
      }
    RUBY
    3.times do |generation|
      server.wait_for_workers(2, generation: generation)
      expect(Array.new(4) { server.get.body }).to all eq("0 19999")
      server.signal(:USR2) if generation < 2
    end
    expect(server.stop.exitstatus).to eq(0)
    expect(server.messages.grep(/BUG|error|reaped \(.*SIG/)).to be_empty
  end

  it "cannot use what belongs to the main one" do
    server = start(<<~RUBY, config: quiet)
      run lambda { |_env|
        ractor = Ractor.new { Pitchfork::Info.workers_count rescue $!.class.name }
        [200, {}, [ractor.#{value}]]
      }
    RUBY
    expect(server.get.body).to eq("Ractor::UnsafeError")
  end

  describe "that run when a process is to be forked" do
    let(:config) { "#{quiet}\nspawn_timeout 2" }
    let(:complaint) { /gives up its fork: the new process would crash, because other Ractors run here \(1\)/ }

    it "keep a mold from it, which would have its workers crash" do
      server = start("RACTOR = Ractor.new { Ractor.receive }\n#{ServerExamples::HELLO}",
                     ready: false, config: "#{config}\nmax_consecutive_spawn_errors 1")
      expect(server.wait_for_end.exitstatus).to eq(1)
      expect(server.log).to match(/ERROR .*mold gen=0 pid=\d+ #{complaint}/).and match(/failed to spawn a worker/)
    end

    it "keep a worker from being promoted, until they end" do
      server = start(<<~RUBY, config: config)
        RACTORS = []
        run lambda { |env|
          case env["PATH_INFO"]
          when "/start" then RACTORS << Ractor.new { Ractor.receive }
          when "/end" then RACTORS.pop.send(nil)
          end
          [200, {}, [Process.pid.to_s]]
        }
      RUBY
      pid = server.get("/start").body
      server.signal(:USR2)
      server.wait_for_log(/worker=0 gen=0 pid=#{pid} #{complaint}/)
      server.alive_until("the worker") { server.worker&.idle? }
      expect(server.get("/end").body).to eq(pid)
      server.signal(:USR2)
      server.wait_for_workers(1, generation: 1)
      expect(server.get.body).not_to eq(pid)
    end
  end
end
