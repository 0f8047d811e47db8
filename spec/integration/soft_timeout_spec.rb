# frozen_string_literal: true

require "support/server"

# What happens in a worker whose request takes too long.
RSpec.describe "the soft timeout", :server do
  let(:slow) { <<~RUBY }
    run lambda { |env|
      next [200, {}, ["fine"]] unless env["PATH_INFO"] == "/slow"

      Thread.current[:request] = "slow"
      Thread.current.thread_variable_set(:tenant, 7)
      sleep 60
    }
  RUBY

  def ask_slow(server) = server.raw("GET /slow HTTP/1.1\r\nHost: a\r\nX-Request-Id: r1\r\n\r\n")

  it "calls after_worker_timeout on another thread, which sees the request's, then before_worker_exit" do
    server = start(slow, config: <<~'CONFIG')
      timeout 3
      after_worker_timeout do |server, worker, info|
        info.copy_thread_variables!
        facts = [server.class, worker.nr, info.thread == Thread.main, Thread.current == Thread.main,
                 info.rack_env["PATH_INFO"], info.rack_env["HTTP_X_REQUEST_ID"], Thread.current[:request],
                 Thread.current.thread_variable_get(:tenant), info.thread.backtrace.join.include?("sleep")]
        File.write("notes", facts.join(" ") + "\n", mode: "a")
      end
      before_worker_exit { |_, worker| File.write("notes", "leaving #{worker.nr}\n", mode: "a") }
      at_exit { File.write("notes", "at_exit\n", mode: "a") if Process.pid == $worker }
      after_worker_ready { |_, _| $worker = Process.pid }
    CONFIG
    pid = server.worker.pid
    expect(ask_slow(server)).to eq("")
    server.wait_for_another_worker(pid)
    expect(server.lines("notes"))
      .to eq(["PitchforkRs::HttpServer 0 true false /slow r1 slow 7 true", "leaving 0", "at_exit"])
    name = "worker=0 gen=0 pid=#{pid}"
    expect(server.messages.grep(/#{name} /).last(3))
      .to match(["#{name} timed out, exiting", "#{name} exiting", a_string_matching(/ reaped \(.*exit 0>\)/)])
    expect(server.get.body).to eq("fine")
  end

  it "goes on to the exit when after_worker_timeout raises" do
    server = start(slow, config: <<~'CONFIG')
      timeout 3
      after_worker_timeout { |_, _, _| raise "no luck" }
      before_worker_exit { |_, _| File.write("leaving", "yes") }
    CONFIG
    pid = server.worker.pid
    ask_slow(server)
    server.wait_for_another_worker(pid)
    expect(server.log).to match(/after_worker_timeout error: no luck \(RuntimeError\)/)
    expect(server.read("leaving")).to eq("yes")
    expect(server.log).not_to match(/killing/)
  end

  it "lets a request that ends during the hook be answered, and begins no other" do
    server = start(<<~RUBY, config: <<~'CONFIG')
      run lambda { |env|
        next [200, {}, [Process.pid.to_s]] unless env["PATH_INFO"] == "/slow"

        sleep 0.01 until File.exist?("late")
        [200, {}, ["in time after all"]]
      }
    RUBY
      timeout 3, cleanup: 5
      after_worker_timeout do |_, _, _|
        File.write("late", "")
        File.open("gate", "r+", &:gets)
      end
    CONFIG
    pid = server.worker.pid
    expect(ask_slow(server)).to end_with("in time after all")
    waiting = Thread.new { server.get.body }
    wait_until("the second client to wait") { waiting.status == "sleep" }
    server.open_gate
    expect(waiting.value.to_i).not_to eq(pid)
  end

  it "cannot be waited out by a hook that does not return" do
    server = start(slow, config: "timeout 3, cleanup: 2\nafter_worker_timeout { |_, _, _| sleep }")
    pid = server.worker.pid
    ask_slow(server)
    server.wait_for_another_worker(pid)
    expect(server.log).to match(/worker=0 gen=0 pid=#{pid} timed out, killing/)
  end

  it "is put off by extend_deadline, for the request in hand only" do
    server = start(<<~RUBY, workers: 2, config: "timeout 3, cleanup: 2\nrewindable_input false")
      run lambda { |env|
        timeout = env["pitchfork.timeout"]
        before = timeout.deadline
        if env["PATH_INFO"] == "/slow"
          extended = timeout.extend_deadline(5)
          File.write("reading", "") if env["REQUEST_METHOD"] == "POST"
          env["rack.input"].read
          # Longer than soft and hard timeout together, and than the monitor may take to look.
          sleep 6.3
        end
        left = before - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        [200, {}, [[extended.equal?(timeout), (timeout.deadline - before).round, left.round].inspect]]
      }
    RUBY
    pids = server.workers.map(&:pid)
    simple = Thread.new { ask_slow(server) }
    # A client that is waited for stops the clock; the extension must outlast that.
    socket = server.connect
    socket.write("POST /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nda")
    server.alive_until("the reading") { File.exist?(server.path("reading")) }
    socket.write("ta")
    expect([socket.read, simple.value]).to all(end_with("[true, 5, -3]"))
    expect(server.get.body).to eq("[false, 0, 3]")
    expect(server.workers.map(&:pid)).to eq(pids)
    expect(server.log).not_to match(/timed out/)
  ensure
    socket&.close
  end

  it "goes on counting where it stopped when a client was waited for" do
    server = start(<<~RUBY, config: "timeout 3\nrewindable_input false")
      run lambda { |env|
        sleep 2
        File.write("reading", "")
        env["rack.input"].read
        sleep
      }
    RUBY
    socket = server.connect
    socket.write("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nda")
    server.alive_until("the reading") { File.exist?(server.path("reading")) }
    socket.write("ta")
    began = now
    expect(socket.read).to eq("")
    expect(now - began).to be_between(0.5, 2.5)
  ensure
    socket&.close
  end

  it "is not put off by what a thread asks for when its request is over" do
    server = start(<<~RUBY)
      run lambda { |env|
        timeout = env["pitchfork.timeout"]
        left = timeout.deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        Thread.new { #{ServerExamples::AT_GATE}; timeout.extend_deadline(100); File.write("extended", "") }
        [200, {}, [left.round.to_s]]
      }
    RUBY
    expect(server.get.body).to eq("20")
    server.alive_until("the end of the request") { server.worker.idle? }
    server.open_gate
    server.alive_until("the thread") { File.exist?(server.path("extended")) }
    expect(server.get.body).to eq("20")
  end

  it "has no environment to tell of once the request is over" do
    server = start("run ->(env) { [200, {}, [env['pitchfork.timeout'].rack_env.equal?(env).to_s]] }", config: <<~CONFIG)
      after_request_complete { |_, _, env| #{noting("environments", "env['pitchfork.timeout'].rack_env.inspect")} }
    CONFIG
    expect(server.get.body).to eq("true")
    server.alive_until("the hook") { server.lines("environments").any? }
    expect(server.lines("environments")).to eq(["nil"])
  end

  it "refuses to be extended by nonsense" do
    server = start(<<~'RUBY')
      run lambda { |env|
        errors = [-1, "soon", nil, 2**70].map do |seconds|
          env["pitchfork.timeout"].extend_deadline(seconds).class
        rescue ArgumentError, TypeError => e
          "#{e.class}: #{e.message}"
        end
        [200, {}, [errors.join("\n")]]
      }
    RUBY
    expect(server.get.body).to eq(<<~TEXT.chomp)
      ArgumentError: seconds must be a whole number from 0 to 1000000000, got -1
      ArgumentError: invalid value for Integer(): "soon"
      TypeError: can't convert nil into Integer
      ArgumentError: seconds must be a whole number from 0 to 1000000000, got 1180591620717411303424
    TEXT
  end

  it "ends the worker in its own way although the application rescues the exit" do
    server = start(<<~'RUBY', config: "timeout 3, cleanup: 5")
      at_exit { File.write("at_exit", "#{Process.pid}\n", mode: "a") }
      run lambda { |env|
        next [200, {}, ["fine"]] unless env["PATH_INFO"] == "/slow"

        begin
          sleep
        rescue Exception => e
          [500, {}, [e.class.name]]
        end
      }
    RUBY
    pid = server.worker.pid
    expect(ask_slow(server)).to end_with("SystemExit")
    server.wait_for_another_worker(pid)
    expect(server.lines("at_exit")).to eq([pid.to_s])
    expect(server.log).to match(/worker=0 gen=0 pid=#{pid} reaped \(.*exit 0>\)/)
    expect(server.log).not_to match(/killing/)
  end

  it "goes on to the exit when after_worker_timeout runs out of stack" do
    server = start(slow, config: <<~'CONFIG')
      timeout 3
      after_worker_timeout { |_, _, _| deeper = -> { deeper.call }; deeper.call }
      before_worker_exit { |_, _| File.write("leaving", "yes") }
    CONFIG
    pid = server.worker.pid
    ask_slow(server)
    server.wait_for_another_worker(pid)
    expect(server.log).to match(/after_worker_timeout error: stack level too deep \(SystemStackError\)/)
    expect(server.read("leaving")).to eq("yes")
    expect(server.log).not_to match(/killing/)
  end
end
