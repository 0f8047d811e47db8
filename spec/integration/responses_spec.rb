# frozen_string_literal: true

require "support/app_notes"

# What an application may do with a connection beyond returning a response, and what is called when it is over.
RSpec.describe "A response", :server do
  include AppNotes

  describe "after a full hijack" do
    it "is the application's, bytes behind the head first" do
      start_app("io = env['rack.hijack'].call
                 io.write('got ', io.readpartial(5)); io.write(io.readpartial(100)); io.close
                 [500, {}, ['never seen']]")
      talk("#{AppNotes::GET}early") do |socket|
        expect(socket.read(9)).to eq("got early")
        socket.write(" late")
        expect(socket.read).to eq(" late")
      end
      expect_served
    end

    it "is also found as rack.hijack_io, once" do
      start_app("io = env['rack.hijack'].call; again = env['rack.hijack'].call
                 io.write([io.equal?(again), io.equal?(env['rack.hijack_io']), io.class].inspect)
                 io.close
                 [200, {}, []]")
      expect(answer).to eq("[true, true, TCPSocket]")
    end

    it "is forgotten by the server" do
      start_app("io = env['rack.hijack'].call
                 Thread.new { io.write(io.gets); io.close }; [200, {}, []]")
      talk do |socket|
        expect_served
        socket.puts("thread")
        expect(socket.read).to eq("thread\n")
      end
    end

    it "is not answered with 500 when the application raises" do
      start_app("io = env['rack.hijack'].call; io.write('mine'); io.close; raise 'after the hijack'")
      expect(answer).to eq("mine")
      @app.wait_for_log("app error: after the hijack")
      expect_served
    end

    it "closes the body that is returned, without reading it" do
      start_app("env['rack.hijack'].call.close; [200, {}, Body.new(each: ->(&b) { NOTE.('each') })]")
      expect([answer, notes]).to eq(["", ["closed"]])
    end

    it "runs the callbacks" do
      start_app("env['rack.response_finished'] << -> { NOTE.('finished') }
                 env['rack.hijack'].call.close
                 [200, {}, []]")
      answer
      expect(notes).to eq(["finished"])
    end

    it "cannot be taken once the request is over" do
      start_app("env['rack.response_finished'] << -> { env['rack.hijack'].call rescue NOTE.($!.class) }; [200, {}, []]")
      answer
      expect(notes).to eq(["IOError"])
    end
  end

  describe "with a partial hijack" do
    it "has its head, then what the application writes" do
      start_app("taker = ->(io) { io.write('raw ', io.readpartial(4)); io.close }
                 [200, { 'x-a' => 'b', 'rack.hijack' => taker }, Body.new(each: ->(&b) { NOTE.('each') })]")
      talk do |socket|
        head = socket.gets("\r\n\r\n")
        socket.write("ping")
        body = socket.read
        expect(head).to start_with("HTTP/1.1 200 OK\r\n").and include("\r\nx-a: b\r\n")
        expect(head).not_to match(/hijack|content-length|transfer-encoding/i)
        expect(body).to eq("raw ping")
      end
      expect(notes).to eq(["closed"])
      expect_served
    end

    it "gives back the bytes behind the head" do
      start_app("[200, { 'rack.hijack' => ->(io) { io.write('got ', io.readpartial(5)); io.close } }, []]")
      talk("#{AppNotes::GET}early") do |socket|
        expect(Timeout.timeout(5) { socket.read }).to end_with("\r\n\r\ngot early")
      end
    end

    it "may be kept beyond the call" do
      start_app("taker = ->(io) { Thread.new { io.write(io.gets); io.close } }
                 [200, { 'rack.hijack' => taker }, []]")
      talk do |socket|
        expect_served
        socket.puts("later")
        expect(socket.read).to end_with("\r\n\r\nlater\n")
      end
    end

    it "has no room for a body in an answer to HEAD" do
      start_app("[200, { 'rack.hijack' => ->(io) { io.write('body'); io.close } }, []]")
      expect(answer(AppNotes::GET.sub("GET", "HEAD"))).to start_with("HTTP/1.1 200 OK").and end_with("\r\n\r\n")
    end
  end

  describe "with a streaming body" do
    it "has what was written, in order and at once" do
      start_stream("n = stream.write('a', :b, '')
                    stream << 'c' << n.to_s
                    stream.flush
                    File.read('gate')
                    stream.write('d')")
      talk do |socket|
        seen = +""
        seen << socket.readpartial(1_000) until seen.end_with?("abc2")
        @app.open_gate
        expect(socket.read).to eq("d")
      end
      expect(notes).to eq(["closed"])
    end

    it "reads what the client sends" do
      start_stream("3.times { stream.write(stream.read(2).inspect) }; stream.write(stream.read.inspect)")
      talk do |socket|
        socket.write("abcde")
        socket.close_write
        expect(socket.read).to end_with('"ab""cd""e"""')
      end
    end

    it "reads the body of the request" do
      start_stream("stream.write(stream.read)")
      expect(content("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcdef")).to eq("abc")
    end

    it "is over for the client with close_write, and may still read" do
      start_stream("stream.write('a'); stream.close_write; NOTE.([stream.closed?, stream.read].inspect)")
      talk do |socket|
        expect(socket.read).to end_with("\r\n\r\na")
        socket.write("behind the end")
        socket.close_write
        expect(notes.first).to eq('[false, "behind the end"]')
      end
    end

    it "is closed with close, as often as that is called" do
      start_stream("NOTE.(stream.closed?); 2.times { stream.close }; NOTE.(stream.closed?)
                    (stream.write('a') rescue NOTE.($!.class)); (stream.read rescue NOTE.($!.class))")
      expect(content).to eq("")
      expect(notes(5)).to eq(%w[false true IOError IOError closed])
    end

    it "is closed with close_read and close_write" do
      start_stream("stream.close_read; NOTE.(stream.closed?); stream.close_write; NOTE.(stream.closed?)")
      answer
      expect(notes(3)).to eq(%w[false true closed])
    end

    it "is ended by the server when the call returns with the stream open" do
      start_stream("$stream = stream; stream.write('a')")
      expect(content).to eq("a")
      expect_served
    end

    it "cannot be written to afterwards" do
      start_stream("env['rack.response_finished'] << lambda {
                      NOTE.(stream.closed?); stream.write('late') rescue NOTE.($!.class)
                    }
                    stream.write('a')")
      expect(content).to eq("a")
      expect(notes(3)).to eq(%w[closed true IOError])
    end

    it "is cut when the call raises" do
      start_stream("stream.write('a'); raise 'midway'")
      expect(content).to eq("a")
      @app.wait_for_log("app error: midway")
      expect(notes).to eq(["closed"])
    end

    it "raises ClientShutdown when the client has gone, which is no error" do
      start_stream("begin
                      loop { stream.write('x' * 65_536) }
                    rescue PitchforkRs::ClientShutdown
                      NOTE.('gone')
                      raise
                    end")
      talk { |socket| socket.readpartial(10) }
      expect(notes(2)).to eq(%w[gone closed])
      expect_served
      expect(@app.log).not_to include("ERROR")
    end
  end

  describe "with early hints" do
    hints = "env['rack.early_hints']&.call({ 'link' => '</a>; rel=preload' })
             [200, {}, [env.key?('rack.early_hints').to_s]]"

    it "is preceded by them if they are on" do
      start_app(hints, config: "early_hints true\n")
      expect(answer).to start_with("HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n")
    end

    it "has none by default" do
      start_app(hints)
      expect(answer).to start_with("HTTP/1.1 200 OK\r\n").and end_with("\r\n\r\nfalse")
    end

    it "has none for HTTP/1.0" do
      start_app(hints, config: "early_hints true\n")
      expect(answer("GET / HTTP/1.0\r\n\r\n")).to start_with("HTTP/1.1 200 OK\r\n").and end_with("\r\n\r\nfalse")
    end

    it "has none that are empty, or come once it has begun" do
      start_app("hints = env['rack.early_hints']; hints.call({})
                 [200, {}, Body.new(each: ->(&b) { b.call('a'); hints.call({ 'link' => 'late' }); b.call('b') })]",
                config: "early_hints true\n")
      expect(answer).to start_with("HTTP/1.1 200 OK\r\n").and end_with("\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n")
    end

    it "has them before the body is read" do
      start_app("env['rack.early_hints'].call({ 'link' => 'a' }); [200, {}, [env['rack.input'].read]]",
                config: "early_hints true\nrewindable_input false\n")
      talk("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\n") do |socket|
        expect(socket.readpartial(1_000)).to eq("HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n")
        socket.write("abc")
        expect(socket.read).to end_with("\r\n\r\nabc")
      end
    end
  end

  it "is asked for without delay also on a socket that keeps back what is short" do
    start_app("[200, {}, [env['rack.input'].read]]", config: "listen '127.0.0.1:0', tcp_nopush: true", listen: [])
    @app.alive_until("listening") { @app.addresses.any? }
    fields = ["Host: a", "Connection: close", "Content-Length: 3", "Expect: 100-continue"]
    # The kernel would wait for 0.2 s each time.
    began = now
    10.times do
      talk("POST / HTTP/1.1\r\n#{fields.join("\r\n")}\r\n\r\n") do |socket|
        expect(socket.readpartial(1_000)).to eq("HTTP/1.1 100 Continue\r\n\r\n")
        socket.write("abc")
        expect(socket.read).to end_with("\r\n\r\nabc")
      end
    end
    expect(now - began).to be < 1.5
  end

  describe "when it is over" do
    arguments = "->(env, status, headers, error) { NOTE.([env['PATH_INFO'], status, headers, error].inspect) }"

    it "runs callbacks of both lists, the last one first, after the body was closed" do
      start_app("env['rack.response_finished'] << -> { NOTE.('first') }
                 env['rack.after_reply'] << -> { NOTE.('second') }
                 env['rack.response_finished'] << -> { NOTE.('third') }; [200, {}, Body.new(to_ary: -> { ['a'] })]")
      answer
      expect(notes(4)).to eq(%w[closed third second first])
    end

    it "goes on with the others when one raises" do
      start_app("env['rack.after_reply'] << -> { NOTE.('last') } << -> { raise 'oops' } << -> { NOTE.('first') }
                 [200, {}, []]")
      answer
      expect(notes(2)).to eq(%w[first last])
      @app.wait_for_log("oops")
    end

    it "gives arguments to all but those that want none" do
      start_app("env['rack.response_finished'] << -> { NOTE.('none') } << ->(*all) { NOTE.(all.size) } <<
                   ->(a, b = 1, *c) { NOTE.(c.size) } << proc { |a| NOTE.(a.class) } <<
                   Class.new { def call(*all) = NOTE.('object ' + all.size.to_s) }.new
                 [200, {}, []]")
      answer
      expect(notes(5)).to eq(["object 4", "Hash", "2", "4", "none"])
    end

    it "tells status and headers, and no error" do
      start_app("env['rack.response_finished'] << #{arguments}; ['201', { 'x-a' => 'b' }, []]")
      answer
      expect(notes).to eq([["/", 201, { "x-a" => "b" }, nil].inspect]) # Rubies differ in how they write a hash
    end

    it "tells the error of an application that raised, and no status" do
      start_app("env['rack.response_finished'] << #{arguments}; raise 'oops'")
      expect(answer).to start_with("HTTP/1.1 500 ")
      expect(notes).to eq(['["/", nil, nil, #<RuntimeError: oops>]'])
    end

    it "tells status, headers and error of a body that raised" do
      start_app("env['rack.response_finished'] << #{arguments}
                 [200, {}, Body.new(each: ->(&b) { b.call('a'); raise 'midway' })]")
      answer
      expect(notes(2)).to eq(["closed", '["/", 200, {}, #<RuntimeError: midway>]'])
    end

    it "runs callbacks after the client has all of it" do
      start_app("env['rack.response_finished'] << -> { File.read('gate'); NOTE.('finished') }; [200, {}, ['a']]")
      expect(content).to eq("a")
      expect(@app.lines("notes")).to be_empty
      @app.open_gate
      expect(notes).to eq(["finished"])
    end

    it "runs a callback that a callback adds" do
      start_app("done = env['rack.response_finished']; done << -> { done << -> { NOTE.('added') } }; [200, {}, []]")
      answer
      expect(notes).to eq(["added"])
    end

    { "exit" => "exit", "a signal's exception" => "raise Interrupt" }.each do |what, code|
      it "ends the worker in the usual way after #{what}, and has another" do
        start_app(code)
        answer
        @app.wait_for_log(/worker=0 gen=0 pid=\d+ exiting/)
        @app.wait_for_log(/worker=0 gen=0 pid=\d+ reaped/)
        @app.wait_for_workers(1)
        expect_served
      end
    end

    it "goes on after a throw that nobody catches, which is an error like others" do
      start_app("throw :unknown")
      worker = @app.worker.pid
      expect(answer).to start_with("HTTP/1.1 500 ")
      expect_served
      expect(@app.worker.pid).to eq(worker)
    end
  end

  describe "its body" do
    good = "->(&b) { b.call('a') }"

    {
      "each" => "[200, {}, Body.new(each: #{good})]",
      "to_ary" => "[200, {}, Body.new(each: #{good}, to_ary: -> { ['a'] })]",
      "to_path" => "[200, {}, Body.new(each: #{good}, to_path: -> { 'config.ru' })]",
      "a nil to_path" => "[200, {}, Body.new(each: #{good}, to_path: -> {})]",
      "call" => "[200, {}, Body.new(call: ->(stream) { stream.close })]",
      "204" => "[204, {}, Body.new(each: #{good})]",
      "a raise in each" => "[200, {}, Body.new(each: ->(&b) { raise 'oops' })]",
      "a raise in to_ary" => "[200, {}, Body.new(to_ary: -> { raise 'oops' })]",
      "a raise in to_path" => "[200, {}, Body.new(each: #{good}, to_path: -> { raise 'oops' })]",
      "a raise in call" => "[200, {}, Body.new(call: ->(_) { raise 'oops' })]",
      "a raise in a header" => "[200, Class.new { def each = raise('oops') }.new, Body.new(each: #{good})]",
      "a bad status" => "[0, {}, Body.new(each: #{good})]",
      "an exit in each" => "[200, {}, Body.new(each: ->(&b) { exit })]",
      "a throw in each" => "catch(:out) { [200, {}, Body.new(each: ->(&b) { throw :out })] }",
      "a full hijack" => "env['rack.hijack'].call.close; [200, {}, Body.new(each: #{good})]",
      "a partial hijack" => "[200, { 'rack.hijack' => ->(io) { io.close } }, Body.new(each: #{good})]",
      "a partial hijack that raises" => "[200, { 'rack.hijack' => ->(io) { raise 'oops' } }, Body.new(each: #{good})]"
    }.each do |how, code|
      it "is closed once: #{how}" do
        start_app("env['rack.response_finished'] << -> { NOTE.('finished') }; #{code}")
        answer
        wait_until("the next request is served") { answer }
        @app.wait_for_workers(1)
        closed = notes(how.match?(/exit|throw/) ? 2 : 4)
        expect(closed.grep("closed").size).to eq(2)
        expect(closed).to eq(%w[closed finished] * 2) unless how.match?(/exit|throw/)
      end
    end

    it "is closed once when closing it raises, and the response is whole" do
      start_app("body = Body.new(to_ary: -> { ['a'] })
                 def body.close = NOTE.('closed') && raise('oops')
                 [200, {}, body]")
      expect(content).to eq("a")
      expect(notes).to eq(["closed"])
      @app.wait_for_log("app error: oops")
    end

    it "is closed once for HEAD" do
      start_app("[200, {}, Body.new(each: ->(&b) { NOTE.('each') })]")
      answer("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
      expect(notes).to eq(["closed"])
    end

    it "is a file also if to_path gives a Pathname, as Rails has it" do
      start_app("require 'pathname'
                 [200, {}, Body.new(each: #{good}, to_path: -> { Pathname('wanted') })]")
      @app.write("wanted", "from the file")
      expect(content).to eq("from the file")
    end

    it "is read by each if to_path gives nil" do
      start_app("[200, { 'content-length' => '1' }, Body.new(each: #{good}, to_path: -> {})]")
      expect(content).to eq("a")
    end
  end
end
