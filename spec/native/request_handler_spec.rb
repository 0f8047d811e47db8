# frozen_string_literal: true

require "rack/lint"
require "uri" # for Rack::Lint, which does not load it itself
require "support/in_process"

# One request at a time through the native parser, environment, application and response.
RSpec.describe PitchforkRs::RequestHandler, :in_process, :gc_stress do
  # Counts how often it is iterated and closed.
  let(:body_class) do
    Class.new do
      attr_reader :closed, :iterated

      def initialize(*parts, &failure)
        @parts = parts
        @failure = failure
        @closed = @iterated = 0
      end

      def each(&)
        @iterated += 1
        @parts.each(&)
        @failure&.call
      end

      def close = @closed += 1
    end
  end

  def answering(status = 200, headers = {}, body = ["hello"]) = ->(_env) { [status, headers, body] }

  describe "requests of every kind" do
    # Rack::Lint allocates so much that collecting each time would take longer than all other examples together.
    it "reach an application below Rack::Lint", gc_stress: false do
      app = Rack::Lint.new(lambda { |env|
        env["rack.input"].read
        env["REQUEST_METHOD"] == "HEAD" ? [200, { "content-type" => "text/plain" }, []] : hello(env)
      })
      requests = [get, get("/a/b%20c?d=e"), get("http://other.example:81/path?q"), post("data"), post(""),
                  post_chunked("some ", "data"), post_chunked, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
                  "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "QUERY / HTTP/1.1\r\nHost: a\r\n\r\n",
                  "GET / HTTP/1.0\r\n\r\n",
                  post("a=b", "Content-Type: application/x-www-form-urlencoded"),
                  get("/", "X-One: a", "X-One: b", "Cookie: a=1", "Cookie: b=2", "X-High: \xFF\xFE".b)]
      requests.each do |request|
        expect(exchange(request, app).status).to eq(200), "#{request}\n#{log.string}"
      end
      expect(log.string).to be_empty
    end

    it "are served by one handler, one after the other, with a heap that is compacted in between" do
      handler = handler(->(env) { [200, {}, [env["PATH_INFO"], env["rack.input"].read]] }, buffer_size: 10)
      bodies = 5.times.map do |round|
        client, peer = UNIXSocket.pair
        client.write("POST /round/#{round} HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n#{round.to_s * 20}")
        env = stressed { handler.serve(peer) }
        GC.compact if GC.respond_to?(:compact)
        expect(env).to include("PATH_INFO" => "/round/#{round}", "HTTP_HOST" => "a")
        peer.close
        RawResponse.parse(client.read).body
      end
      expect(bodies).to eq(5.times.map { |round| "/round/#{round}#{round.to_s * 20}" })
    end
  end

  describe "the environment" do
    it "describes a plain request" do
      expect(env_of(get("/a/b?c=d&e", "User-Agent: spec"))).to include(
        "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/a/b", "QUERY_STRING" => "c=d&e",
        "REQUEST_URI" => "/a/b?c=d&e", "REQUEST_PATH" => "/a/b", "SERVER_NAME" => "example.org", "SERVER_PORT" => "80",
        "SERVER_PROTOCOL" => "HTTP/1.1", "HTTP_VERSION" => "HTTP/1.1", "REMOTE_ADDR" => "127.0.0.1",
        "HTTP_HOST" => "example.org", "HTTP_USER_AGENT" => "spec", "rack.url_scheme" => "http",
        "rack.multithread" => false, "rack.multiprocess" => true, "rack.run_once" => false,
        "rack.errors" => $stderr, "rack.logger" => logger
      )
      expect(env["SERVER_SOFTWARE"]).to match(/\Apitchfork-rs \d/)
    end

    it "has no trace of a body where there is none, but always an input" do
      expect(env_of(get).keys & %w[CONTENT_LENGTH CONTENT_TYPE HTTP_CONTENT_LENGTH HTTP_CONTENT_TYPE]).to be_empty
      expect(env["rack.input"].read).to eq("")
    end

    it "has length and type of a body under the names of CGI only" do
      expect(env_of(post("data", "Content-Type: text/plain"))).to include(
        "CONTENT_LENGTH" => "4", "CONTENT_TYPE" => "text/plain"
      )
      expect(env).not_to include("HTTP_CONTENT_LENGTH", "HTTP_CONTENT_TYPE")
    end

    it "has the length of a chunked body instead of its coding" do
      expect(env_of(post_chunked("some ", "data"))).to include("CONTENT_LENGTH" => "9")
      expect(env).not_to include("HTTP_TRANSFER_ENCODING")
    end

    it "keeps trailers out" do
      request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" \
                "2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n"
      expect(env_of(request)).to include("HTTP_TRAILER" => "X-Sum")
      expect(env).not_to include("HTTP_X_SUM")
    end

    it "takes the authority of an absolute target instead of Host" do
      expect(env_of(get("http://other.example:81/path?q=1"))).to include(
        "SERVER_NAME" => "other.example", "SERVER_PORT" => "81", "HTTP_HOST" => "other.example:81",
        "PATH_INFO" => "/path", "QUERY_STRING" => "q=1"
      )
    end

    it "drops a fragment" do
      expect(env_of(get("/path?q=1#part"))).to include("PATH_INFO" => "/path", "QUERY_STRING" => "q=1")
    end

    { "example.org" => %w[example.org 80], "example.org:8080" => %w[example.org 8080], "[::1]:3000" => %w[[::1] 3000],
      "[::1]" => %w[[::1] 80], "up_stream:81" => %w[up_stream 81], "" => %w[localhost 80] }.each do |host, expected|
      it "splits the host #{host.inspect}" do
        env = env_of("GET / HTTP/1.1\r\nHost: #{host}\r\n\r\n")
        expect(env.values_at("SERVER_NAME", "SERVER_PORT")).to eq(expected)
      end
    end

    it "names localhost for an old client that names nobody" do
      expect(env_of("GET / HTTP/1.0\r\n\r\n")).to include(
        "SERVER_NAME" => "localhost", "SERVER_PORT" => "80", "SERVER_PROTOCOL" => "HTTP/1.0"
      )
    end

    { "X-Forwarded-Proto: https" => %w[https 443], "X-Forwarded-Proto: https, http" => %w[https 443],
      "X-Forwarded-Proto: http, https" => %w[http 80], "X-Forwarded-Ssl: on" => %w[https 443],
      "X-Forwarded-Ssl: off" => %w[http 80] }.each do |field, expected|
      it "takes the scheme from #{field.inspect}" do
        expect(env_of(get("/", field)).values_at("rack.url_scheme", "SERVER_PORT")).to eq(expected)
      end
    end

    it "joins repeated fields, cookies in their own way" do
      expect(env_of(get("/", "X-A: 1", "x-a: 2", "Cookie: a=1", "Cookie: b=2"))).to include(
        "HTTP_X_A" => "1, 2", "HTTP_COOKIE" => "a=1; b=2"
      )
    end

    it "lets nobody pass a name with an underscore for the one with a hyphen" do
      expect(env_of(get("/", "X_User: evil", "X-User: good", "X_Alone: yes"))).to include(
        "HTTP_X_USER" => "good", "HTTP_X_ALONE" => "yes"
      )
      expect(env_of(get("/", "X-User: good", "X_User: evil"))).to include("HTTP_X_USER" => "good")
    end

    it "does not let a field named Version speak for the protocol" do
      expect(env_of(get("/", "Version: 9"))["HTTP_VERSION"]).to eq("HTTP/1.1")
    end

    it "has text that is ASCII in UTF-8, and other bytes as binary" do
      env = env_of(get("/plain?q", "X-High: caf\xC3\xA9"))
      texts = env.select { |key, value| key.match?(/\A[A-Z_]+\z/) && value.is_a?(String) && value.ascii_only? }
      expect(texts.transform_values(&:encoding).values.uniq).to eq([Encoding::UTF_8])
      expect(env["HTTP_X_HIGH"]).to eq("caf\xC3\xA9".b)
      expect(env["HTTP_X_HIGH"].encoding).to eq(Encoding::BINARY)
    end

    it "is a fresh one for each request, down to its strings" do
      app = lambda { |env|
        seen = env.values_at("PATH_INFO", "HTTP_X_A", "mark").inspect
        env["mark"] = true
        %w[PATH_INFO HTTP_X_A].each { |key| env[key] << "changed" unless env[key].frozen? }
        [200, {}, [seen]]
      }
      expect(Array.new(2) { exchange(get("/", "X-A: a"), app).body }.uniq).to eq(['["/", "a", nil]'])
    end

    if Gem::Version.new(Rack.release) < Gem::Version.new("3.2")
      it "has no path for OPTIONS *" do
        expect(env_of("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")).not_to include("PATH_INFO")
      end
    else
      it "has * as the path of OPTIONS *" do
        expect(env_of("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")).to include("PATH_INFO" => "*")
      end
    end
  end

  describe "the response" do
    it "is framed by the length of an Array" do
      response = exchange(get, answering(200, { "x-a" => "1" }, %w[hel lo]))
      expect([response.status, response.body]).to eq([200, "hello"])
      expect(response.fields).to include("content-length" => ["5"], "x-a" => ["1"], "connection" => ["close"])
      expect(response["date"]).to match(/\A\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\z/)
      expect(response.fields).not_to include("transfer-encoding")
    end

    it "is framed by the length of a body that converts itself to an Array" do
      body = Class.new do
        def to_ary = %w[con verted]
        def each = raise("not to be iterated")
      end
      expect(exchange(get, answering(200, {}, body.new))).to have_attributes(
        body: "converted", fields: include("content-length" => ["9"])
      )
    end

    it "is chunked where only iterating tells the length, without empty chunks" do
      response = exchange(get, answering(200, {}, %w[one two].each_entry.lazy.flat_map { |part| [part, ""] }))
      expect(response["transfer-encoding"]).to eq("chunked")
      expect(response.body).to eq("3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
      expect(response.fields).not_to include("content-length")
    end

    it "is ended by the connection for HTTP/1.0" do
      response = exchange("GET / HTTP/1.0\r\n\r\n", answering(200, {}, %w[one two].each_entry))
      expect(response.body).to eq("onetwo")
      expect(response.fields.keys & %w[content-length transfer-encoding]).to be_empty
    end

    %w[content-length Content-Length CONTENT-LENGTH].each do |name|
      it "keeps the application's #{name}" do
        response = exchange(get, answering(200, { name => "6" }, %w[one two].each_entry))
        expect(response.to_a).to match([200, include("content-length" => ["6"]), "onetwo"])
        expect(response.fields).not_to include("transfer-encoding")
      end
    end

    it "is passed on as it is where the application has applied the coding itself" do
      response = exchange(get, answering(200, { "Transfer-Encoding" => "chunked" }, ["2\r\nab\r\n", "0\r\n\r\n"]))
      expect(response.fields).to include("transfer-encoding" => ["chunked"])
      expect(response.fields).not_to include("content-length")
      expect(response.dechunked).to eq("ab")
    end

    it "has no body for HEAD, but the length of one" do
      response = exchange("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", answering(200, {}, %w[hel lo]))
      expect(response.to_a).to match([200, include("content-length" => ["5"]), ""])
    end

    it "does not iterate a body for HEAD, and closes it" do
      body = body_class.new("hello")
      expect(exchange("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", answering(200, {}, body)).body).to eq("")
      expect([body.iterated, body.closed]).to eq([0, 1])
    end

    [204, 304].each do |status|
      it "has neither body nor framing for #{status}" do
        body = body_class.new("hello")
        response = exchange(get, answering(status, {}, body))
        expect(response.to_a).to match([status, include("connection" => ["close"]), ""])
        expect(response.fields.keys & %w[content-length transfer-encoding]).to be_empty
        expect(body.closed).to eq(1)
      end
    end

    it "has a line for each value of a field" do
      response = exchange(get, answering(200, { "set-cookie" => "a=1\nb=2", "x-list" => %w[1 2] }))
      expect(response.fields).to include("set-cookie" => %w[a=1 b=2], "x-list" => %w[1 2])
    end

    it "does not let the application speak for the server" do
      headers = { "Date" => "yesterday", "Connection" => "keep-alive", "status" => "201 x", "rack.secret" => "x" }
      response = exchange(get, answering(200, headers))
      expect(response.fields).to include("connection" => ["close"], "date" => [match(/GMT\z/)])
      expect(response.fields.keys.grep(/rack|status/)).to be_empty
      expect(log.string).to be_empty
    end

    { "a name with a space" => { "x a" => "1" }, "a name with a line end" => { "x-a\r\nx-b" => "1" },
      "a value with CR" => { "x-a" => "1\rx-b: 2" }, "a value with CRLF" => { "x-a" => "1\r\nx-b: 2" },
      "a value with NUL" => { "x-a" => "1\0" } }.each do |what, headers|
      it "is free of #{what}, and the log says so" do
        response = exchange(get, answering(200, headers.merge("x-good" => "yes")))
        expect(response.fields.keys.grep(/\Ax/)).to eq(["x-good"])
        expect(log.string).to match(/\AERROR response field .* dropped: .+\n\z/)
      end
    end

    it "takes what is no String as its text" do
      response = exchange(get, answering("404", { "x-number" => 5, "x-symbol" => :abc }))
      expect(response.to_a).to match([404, include("x-number" => ["5"], "x-symbol" => ["abc"]), "hello"])
    end

    it "takes headers that only respond to each" do
      headers = Class.new { def each = yield("x-a", "1") }.new
      expect(exchange(get, answering(200, headers))["x-a"]).to eq("1")
    end

    it "reaches a slow reader whole" do
      text = Random.new(1).bytes(300_000)
      expect(exchange(get, answering(200, {}, [text, text])).body).to eq(text + text)
      expect(exchange(get, answering(200, {}, [text, text].each_entry)).dechunked).to eq(text + text)
    end

    it "is cut at its length if its body is longer, and the log says so" do
      expect(exchange(get, answering(200, { "content-length" => "3" }, %w[hel lo])).body).to eq("hel")
      expect(log.string).to eq("ERROR the response body is longer than its Content-Length of 3 bytes\n")
    end

    it "ends early if its body is shorter than its length, and the log says so" do
      expect(exchange(get, answering(200, { "content-length" => "9" }, %w[hel lo])).body).to eq("hello")
      expect(log.string).to eq("ERROR the response body is shorter than its Content-Length of 9 bytes\n")
    end
  end

  describe "an application that fails" do
    [RuntimeError, NotImplementedError, LoadError, NoMemoryError, SystemStackError].each do |error|
      it "answers 500 to #{error}, and logs it with its backtrace" do
        app = ->(_env) { raise error, "no luck" }
        expect(exchange(get, app).to_a).to match([500, include("content-length" => ["0"]), ""])
        expect(log.string).to start_with("ERROR app error: no luck (#{error})\n")
        expect(log.string).to include("#{__FILE__}:#{__LINE__ - 3}:in ")
      end
    end

    it "does not let a message write lines of its own" do
      exchange(get, ->(_env) { raise "one\ntwo" })
      expect(log.string).to start_with("ERROR app error: \"one\\ntwo\" (RuntimeError)\n")
    end

    [SystemExit.new, Interrupt.new, SignalException.new("TERM"), Exception.new("neither kind")].each do |error|
      it "lets #{error.class} go its way" do
        expect { serve(get, ->(_env) { raise error }) }.to(raise_error { |raised| expect(raised).to equal(error) })
        expect(log.string).to be_empty
      end
    end

    it "lets a throw go its way" do
      expect(catch(:done) { serve(get, ->(_env) { throw :done, :thrown }) }).to eq(:thrown)
    end

    it "aborts the response if the body raises midway, so that the client can tell" do
      body = body_class.new("x" * 100_000) { raise "no luck" }
      response = exchange(get, answering(200, {}, body))
      expect([response.status, response.dechunked]).to eq([200, nil])
      expect(response.body).not_to include("HTTP/1.1")
      expect(log.string).to start_with("ERROR app error: no luck (RuntimeError)\n")
    end

    it "answers 500 if the body raises before the client has seen anything" do
      body = body_class.new { raise "no luck" }
      expect(exchange(get, answering(200, {}, body)).status).to eq(500)
    end

    it "loses nothing of the response if closing the body raises" do
      body = body_class.new("hello")
      def body.close = super && raise("cannot close")
      expect(exchange(get, answering(200, {}, body)).dechunked).to eq("hello")
      expect(log.string).to start_with("ERROR app error: cannot close (RuntimeError)\n")
    end

    { "nil" => [nil, "wanted an Array of status, headers and body"],
      "a String" => ["hello", "wanted an Array of status, headers and body"],
      "a pair" => [[200, {}], "wanted an Array of status, headers and body"],
      "a status that is no number" => [[Object.new, {}, []], "wanted an Integer as status"],
      "a status out of range" => [[42, {}, []], "wanted a status from 100 to 999"],
      "a body that cannot be iterated" => [[200, {}, 5], "wanted a body that responds to each"],
      "a body of other things than Strings" => [[200, {}, [:a]], "wanted Strings in the body"],
      "a body that yields other things than Strings" => [[200, {}, [1].each_entry], "wanted Strings in the body"],
      "headers that are a number" => [[200, 5, []], "headers"] }.each do |what, (returned, complaint)|
      it "answers 500 if it returns #{what}, and logs what was wrong" do
        expect(exchange(get, ->(_env) { returned }).status).to eq(500)
        expect(log.string.lines.first).to match(/\AERROR app error: .*#{Regexp.escape(complaint)}.*\n\z/)
      end
    end
  end

  describe "the body of the response" do
    { "is sent" => ["GET", 200, {}, nil], "is not wanted" => ["HEAD", 200, {}, nil],
      "is not allowed" => ["GET", 204, {}, nil], "raises midway" => ["GET", 200, {}, -> { raise "no luck" }],
      "is too long" => ["GET", 200, { "content-length" => "1" }, nil],
      "is too short" => ["GET", 200, { "content-length" => "99" }, nil],
      "comes with a wrong status" => ["GET", 42, {}, nil],
      "comes with headers that are none" => ["GET", 200, 5, nil] }.each do |what, (method, status, headers, failure)|
      it "is closed exactly once when it #{what}" do
        body = body_class.new("hello", "world", &failure)
        serve("#{method} / HTTP/1.1\r\nHost: a\r\n\r\n", answering(status, headers, body))
        expect(body.closed).to eq(1)
      end
    end

    it "is closed exactly once when it ends the process" do
      body = body_class.new("hello") { exit }
      expect { serve(get, answering(200, {}, body)) }.to raise_error(SystemExit)
      expect(body.closed).to eq(1)
    end

    it "is closed exactly once when the client has gone" do
      body = body_class.new("x" * 2_000_000, "x" * 2_000_000)
      client, peer = UNIXSocket.pair
      client.write(get)
      app = lambda { |_env|
        client.close
        [200, {}, body]
      }
      stressed { handler(app).serve(peer) }
      expect([body.closed, log.string]).to eq([1, ""])
    end

    it "cannot write any more once the response is over" do
      kept = nil
      body = Class.new { define_method(:each) { |&block| kept = block } }
      serve(get, answering(200, {}, body.new))
      GC.start
      expect { stressed { kept.call("late") } }.to raise_error(IOError, /already over/)
    end
  end
end
