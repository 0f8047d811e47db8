# frozen_string_literal: true

require "digest"
require "json"
require "support/server"

# What the tests of the native handler cannot show: real connections, real workers.
RSpec.describe "serving", :server do
  def chunked_post(body)
    fields = { "Transfer-Encoding" => "chunked", "Content-Type" => "application/octet-stream" }
    Net::HTTP::Post.new("/", fields).tap { |post| post.body_stream = StringIO.new(body) }
  end

  # Whoever writes the last of them, the monitor or the worker.
  def messages_of_start(server)
    server.wait_for_log(/worker=0 gen=0 pid=\d+ registered/)
    server.messages
  end

  # All but that there is somebody else by now who waits for clients.
  def messages_without_reactor(server) = server.messages.grep_v(/\Areactor pid=\d+ ready\z/)

  it "answers a request" do
    server = start(<<~'RUBY')
      run ->(env) { [200, { "content-type" => "text/plain" }, ["hello from #{env["PATH_INFO"]}"]] }
    RUBY
    response = server.get("/here")
    expect([response.code, response.body, response["connection"]]).to eq(["200", "hello from /here", "close"])
  end

  it "serves every kind of request to an application below Rack::Lint" do
    server = start(<<~RUBY, workers: 2)
      require "rack/lint"
      require "uri" # which this middleware uses, and does not load
      run Rack::Lint.new(lambda { |env|
        body = env["rack.input"].read.to_s
        [200, { "content-type" => "text/plain" }, env["REQUEST_METHOD"] == "HEAD" ? [] : [body.upcase]]
      })
    RUBY
    answers = ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
               "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\ndata",
               "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n",
               "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://other.example/path HTTP/1.1\r\nHost: a\r\n\r\n",
               "GET / HTTP/1.0\r\n\r\n"].map { |request| server.exchange(request) }
    expect(server.messages.grep(/error/)).to be_empty
    expect(answers.map(&:status)).to all(eq(200))
    expect(answers.values_at(0, 2, 3, 4, 5, 6).map(&:content)).to eq(["", "DATA", "DATA", "", "", ""])
    expect(answers[1].body).to eq("")
  end

  it "puts what the configuration demands into each environment, whatever the request says" do
    config = 'HttpParser::DEFAULTS.update("rack.url_scheme" => "https", "HTTP_X_REAL_IP" => "unknown")'
    server = start("run ->(env) { [200, {}, [env.values_at('rack.url_scheme', 'HTTP_X_REAL_IP').join(' ')]] }",
                   config: config)
    expect(server.exchange("GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: forged\r\n\r\n").body).to eq("https unknown")
  end

  it "tells the application about the connection and the worker" do
    server = start(<<~'RUBY')
      require "json"
      run lambda { |env|
        worker = env["pitchfork.worker"]
        facts = env.slice("REMOTE_ADDR", "SERVER_NAME", "SERVER_PORT").merge(nr: worker.nr, pid: worker.pid == Process.pid)
        [200, {}, [JSON.generate(facts)]]
      }
    RUBY
    expect(JSON.parse(server.get.body)).to eq(
      "REMOTE_ADDR" => "127.0.0.1", "SERVER_NAME" => "127.0.0.1", "SERVER_PORT" => server.port.to_s,
      "nr" => 0, "pid" => true
    )
  end

  describe "request bodies" do
    it "arrive whole, from memory or from a file, at their length or in chunks" do
      server = start(<<~'RUBY', config: "client_body_buffer_size 1000")
        require "digest"
        run lambda { |env|
          input = env["rack.input"]
          digests = Array.new(2) { input.rewind; Digest::SHA256.hexdigest(input.read) }
          [200, {}, [[input.size, env["CONTENT_LENGTH"], *digests].join(" ")]]
        }
      RUBY
      [999, 1000, 1001, 3_000_000].each do |size|
        body = Random.new(size).bytes(size)
        expected = "#{size} #{size} #{([Digest::SHA256.hexdigest(body)] * 2).join(" ")}"
        expect([server.post("/", body).body, server.request(chunked_post(body)).body]).to eq([expected] * 2)
      end
    end

    it "go beyond the buffer's size to a file that has no name, and is gone with the request" do
      server = start(<<~'RUBY', config: "client_body_buffer_size 4\nENV['TMPDIR'] = Dir.pwd")
        run lambda { |env|
          env["rack.input"].read
          links = Dir.each_child("/proc/self/fd").filter_map { |fd| File.readlink("/proc/self/fd/#{fd}") rescue nil }
          nameless = links.count { |link| link.start_with?(Dir.pwd) && link.end_with?(" (deleted)") }
          [200, {}, [nameless.to_s, " ", Dir.children(Dir.pwd).sort.join(" ")]]
        }
      RUBY
      answers = %w[data longer data].map { |body| server.post("/", body).body }
      expect(answers).to eq(%w[0 1 0].map { |count| "#{count} config.rb config.ru gate log" })
    end

    it "are asked for with 100 Continue when the application reads" do
      server = start("run ->(env) { [200, {}, [env['PATH_INFO'] == '/read' ? env['rack.input'].read : 'unread']] }")
      answers = %w[/read /ignore].map do |path|
        socket = server.connect
        socket.write("POST #{path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n" \
                     "Content-Length: 4\r\n\r\n")
        first = socket.gets("\r\n\r\n")
        socket.write("data") if first.start_with?("HTTP/1.1 100 Continue\r\n")
        [first.lines.first.chomp, socket.read]
      ensure
        socket&.close
      end
      expect(answers).to match([["HTTP/1.1 100 Continue", /\r\n\r\ndata\z/], ["HTTP/1.1 200 OK", "unread"]])
    end

    it "need not be read, nor come, for the response to arrive" do
      server = start("run ->(_env) { [413, {}, ['too much']] }", config: "rewindable_input false")
      socket = server.connect
      socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nsome")
      socket.wait_readable
      # After a reset the first of these would get no answer but another reset, and the second would raise.
      2.times { socket.write("more") }
      expect(socket.read).to match(%r{\AHTTP/1\.1 413 .*too much\z}m)
    ensure
      socket&.close
    end
  end

  describe "responses" do
    let(:rackup) { <<~'RUBY' }
      parts = Array.new(50) { |i| i.to_s.rjust(2) * 50_000 }
      run lambda { |env|
        case env["PATH_INFO"]
        when "/array" then [200, {}, parts]
        when "/enumerated" then [200, {}, parts.each_entry]
        else [env["PATH_INFO"][1..].to_i, {}, ["text"]]
        end
      }
    RUBY
    let(:text) { Array.new(50) { |i| i.to_s.rjust(2) * 50_000 }.join }

    it "of megabytes arrive whole, whatever their framing" do
      server = start(rackup)
      answers = [server.get("/array"), server.get("/enumerated"), server.exchange("GET /enumerated HTTP/1.0\r\n\r\n")]
      expect(answers.map { |answer| answer.body == text }).to all(be(true))
      expect(answers.map { |answer| [answer["content-length"], answer["transfer-encoding"]] }).to eq(
        [["5000000", nil], [nil, "chunked"], [nil, nil]]
      )
    end

    it "without a body have none" do
      server = start(rackup)
      answers = [204, 304].map { |status| server.exchange("GET /#{status} HTTP/1.1\r\nHost: a\r\n\r\n") }
      expect(answers.map { |answer| [answer.status, answer.body] }).to eq([[204, ""], [304, ""]])
      head = server.exchange("HEAD /200 HTTP/1.1\r\nHost: a\r\n\r\n")
      expect([head["content-length"], head.body]).to eq(["4", ""])
    end

    it "whose body fails midway end without their end" do
      server = start(<<~RUBY)
        body = Class.new do
          def each
            yield "x" * 100_000
            raise "no luck"
          end
          def close = File.write("closed", "x", mode: "a")
        end
        run ->(env) { [200, env["PATH_INFO"] == "/length" ? { "content-length" => "200000" } : {}, body.new] }
      RUBY
      expect(server.exchange(ServerExamples::GET)).to have_attributes(status: 200, dechunked: nil)
      expect(server.exchange("GET /length HTTP/1.1\r\nHost: a\r\n\r\n").body.size).to eq(100_000)
      expect([server.read("closed"), server.log.scan("app error: no luck (RuntimeError)").size]).to eq(["xx", 2])
    end
  end

  describe "an application that raises" do
    it "answers 500, logs what happened, and answers the next request" do
      server = start("run ->(env) { env['PATH_INFO'] == '/' ? [200, {}, ['fine']] : raise('no luck') }")
      pid = server.worker.pid
      expect(server.get("/fail").code).to eq("500")
      expect(server.get.body).to eq("fine")
      expect(server.worker.pid).to eq(pid)
      expect(server.messages).to include("app error: no luck (RuntimeError)", match(/\Aconfig\.ru:1:in /))
    end

    it "is told what was wrong with a response that is none" do
      server = start("run ->(_env) { 'hello' }")
      expect(server.get.code).to eq("500")
      expect(server.messages).to include(
        'app error: wanted an Array of status, headers and body, but the app returned "hello" (TypeError)'
      )
    end
  end

  describe "an application that ends its process" do
    { "exit" => "exit", "abort" => "abort", "raise" => "raise SignalException, 'TERM'" }
      .each do |what, code|
      it "has its worker replaced after #{what}, with its hook run" do
        server = start("run ->(env) { env['PATH_INFO'] == '/' ? [200, {}, ['fine']] : (#{code}) }",
                       config: "before_worker_exit { |_, worker| #{noting("exiting", "worker.nr")} }")
        pid = server.worker.pid
        server.raw("GET /end HTTP/1.1\r\nHost: a\r\n\r\n")
        server.alive_until("another worker") { server.idle_workers.any? { |worker| worker.pid != pid } }
        expect(server.get.body).to eq("fine")
        expect(server.lines("exiting")).to eq(["0"])
        expect(server.log).to match(/worker=0 gen=0 pid=#{pid} reaped/)
      end
    end
  end

  describe "a client that has gone" do
    it "costs no line in the log while the response is written" do
      server = start(<<~'RUBY', config: "after_request_complete { |_, _, _| File.write('complete', 'x', mode: 'a') }")
        body = Class.new do
          def each
            File.write("started", "")
            100.times { yield "x" * 100_000 }
          end
          def close = File.write("closed", "x", mode: "a")
        end
        run ->(env) { [200, {}, env["PATH_INFO"] == "/" ? ["fine"] : body.new] }
      RUBY
      before = messages_of_start(server)
      socket = server.connect
      socket.write("GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
      wait_until("the beginning") { File.exist?(server.path("started")) }
      socket.close
      wait_until("the end") { server.read("complete") == "x" }
      expect(server.read("closed")).to eq("x")
      expect(server.get.body).to eq("fine")
      expect(messages_without_reactor(server)).to eq(before)
    end

    it "costs nothing at all when it has said nothing" do
      server = start("run ->(_env) { [200, {}, ['fine']] }")
      before = messages_of_start(server)
      3.times { server.connect.close }
      expect(server.get.body).to eq("fine")
      expect(messages_without_reactor(server)).to eq(before)
      wait_until("the count of one request") { server.worker.status == "requests: 1, waiting" }
    end

    it "does not count as an error in the middle of a request body" do
      server = start("run ->(env) { File.write('called', 'x', mode: 'a'); [200, {}, [env['rack.input'].read]] }",
                     config: "rewindable_input false")
      before = messages_of_start(server)
      socket = server.connect
      socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
      wait_until("the call") { server.read("called") == "x" }
      socket.close
      expect(server.get.body).to eq("")
      expect(messages_without_reactor(server)).to eq(before)
    end
  end

  describe "a malformed request" do
    it "is answered without the application, and without a trace at the usual log level" do
      server = start("run ->(_env) { File.write('called', 'x'); [200, {}, []] }",
                     config: "DEFAULTS[:logger].level = Logger::INFO")
      before = messages_of_start(server)
      requests = ["GET /\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
                  "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
                  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                  "GET /#{"x" * 20_000} HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n"]
      answers = requests.map { |bytes| server.raw(bytes) }
      expect(answers.map { |answer| answer[9, 3] }).to eq(%w[400 400 505 501 400 414 400])
      expect(answers).to all(match(/\AHTTP.*\r\nDate: .*\r\nContent-Length: 0\r\nConnection: close\r\n\r\n\z/))
      expect([server.read("called"), server.worker.status]).to eq(["", "requests: 0, waiting"])
      expect(messages_without_reactor(server)).to eq(before)
    end
  end
end
