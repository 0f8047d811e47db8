# frozen_string_literal: true

require "support/in_process"
require "tempfile"

# `rack.input` must be no different from a file in binary mode, however the body came and wherever it is kept.
RSpec.describe PitchforkRs::Input, :in_process, :gc_stress do
  text = "first line\nsecond: \xC3\xA9\r\n\n#{"long " * 1500}\nlast, unfinished"
  kinds = {
    "in memory" => ->(spec, body, &block) { spec.body_of(spec.post(body), &block) },
    "in a file" => ->(spec, body, &block) { spec.body_of(spec.post(body), buffer_size: 7, &block) },
    "that came in chunks" => lambda { |spec, body, &block|
      spec.body_of(spec.post_chunked(*body.b.scan(/.{1,1000}/mn)), &block)
    },
    "that came in chunks, in a file" => lambda { |spec, body, &block|
      spec.body_of(spec.post_chunked(*body.b.scan(/.{1,1000}/mn)), buffer_size: 0, &block)
    }
  }

  # What a call gives, with all that one may notice about it.
  def outcome
    result = yield
    result.is_a?(String) ? [result.b, result.encoding] : result
  rescue StandardError => e
    [e.class, e.message]
  end

  def file_with(body)
    Tempfile.create("body") do |file|
      file.binmode
      file.write(body)
      file.rewind
      yield file
    end
  end

  calls = {
    "reads everything, then nothing" => ->(io) { [io.read, io.read, io.read(nil)] },
    "reads pieces, then nil" => ->(io) { Array.new(6) { io.read(2000) } },
    "reads nothing when asked for nothing, at the end as well" => ->(io) { [io.read(0), io.read.size, io.read(0)] },
    "reads more than there is" => ->(io) { [io.read(1_000_000), io.read(1)] },
    "reads lines, then nil" => ->(io) { Array.new(6) { io.gets } },
    "yields lines" => ->(io) { [].tap { |lines| io.each { |line| lines << line } } },
    "yields what is left" => ->(io) { [io.read(3), io.gets, [].tap { |lines| io.each { |line| lines << line } }] },
    "enumerates lines without a block" => ->(io) { io.each.to_a },
    "returns itself from each" => ->(io) { io.each(&:size).equal?(io) },
    "can be broken out of" => ->(io) { [io.each { |line| break line if line.size > 11 }, io.gets] },
    "starts again after rewind" => ->(io) { [io.read(5), io.rewind, io.gets, io.rewind, io.read] },
    "tells its size at any time" => ->(io) { [io.size, io.read(5), io.size, io.read.size, io.size] },
    "reads into a buffer" => lambda { |io|
      buffer = +"what was there before is gone"
      [io.read(5, buffer).equal?(buffer), buffer.b, io.read(nil, buffer).equal?(buffer), buffer.b]
    },
    "empties the buffer at the end" => lambda { |io|
      io.read
      buffer = +"old"
      [io.read(5, buffer), buffer.dup, io.read(nil, buffer << "old"), buffer]
    },
    "refuses a negative length" => ->(io) { io.read(-1) },
    "refuses a length that is no number" => ->(io) { io.read("5") },
    "refuses a buffer that is no String" => ->(io) { io.read(5, :buffer) },
    "refuses a frozen buffer" => ->(io) { io.read(5, "frozen") }
  }

  kinds.each do |kind, carry|
    describe "a body #{kind}" do
      calls.each do |what, call|
        it what do
          seen = carry.call(self, text) { |input| outcome { call.call(input) } }
          expect(seen).to eq(file_with(text) { |file| outcome { call.call(file) } })
        end
      end

      it "reads and is made of binary strings" do
        seen = carry.call(self, text) { |input| [input.read(3), input.gets, input.read, input.external_encoding] }
        expect(seen[..2].map(&:encoding)).to eq([Encoding::BINARY] * 3)
        expect(seen.last).to eq(Encoding::BINARY)
      end
    end
  end

  {
    "no body" => "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a body of no bytes" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "a body of no chunks" => "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
  }.each do |what, request|
    it "is empty for #{what}" do
      seen = body_of(request) do |input|
        [input.read, input.read(1), input.read(0), input.gets, input.each.to_a, input.size, input.rewind]
      end
      expect(seen).to eq(["", nil, "", nil, [], 0, 0])
    end
  end

  it "goes on where the last reader stopped, whatever way it read" do
    seen = body_of(post(text)) { |input| [input.gets, input.read(6), input.gets, input.each.first, input.read.b[-5..]] }
    expect(seen[..1]).to eq(["first line\n", "second"])
  end

  it "holds exactly the bytes of a body whose packets come one byte at a time" do
    client, peer = UNIXSocket.pair
    request = post_chunked("ab\n", "c" * 20, "\r\nd")
    writer = Thread.new { request.each_char { |char| client.write(char) && Thread.pass } }
    seen = nil
    app = ->(env) { [200, {}, [(seen = env["rack.input"].read)]] }
    stressed { handler(app, buffer_size: 10).serve(peer) }
    writer.join
    expect(seen).to eq("ab\n#{"c" * 20}\r\nd")
  end

  it "holds nothing of a request that is over" do
    kept = nil
    body_of(post("0123456789")) { |input| (kept = input).read(4) }
    %i[read gets size].each { |call| expect { kept.public_send(call) }.to raise_error(IOError, "the request is over") }
  end

  it "can be closed, which nobody has to do" do
    expect(body_of(post("data")) { |input| [input.close, input.read] }).to eq([nil, "data"])
  end

  it "is made by the server alone" do
    expect { described_class.new }.to raise_error(TypeError, /allocator/)
    expect { described_class.allocate }.to raise_error(TypeError, /allocator/)
  end

  describe "when the client leaves in the middle" do
    def cut_off(app)
      client, peer = UNIXSocket.pair
      client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
      client.close_write
      stressed { handler(app, buffer_size: 10).serve(peer) }
      peer.close
      client.read
    end

    it "raises ClientShutdown, which blames no line of the application" do
      raised = nil
      cut_off(lambda do |env|
        env["rack.input"].read
      rescue EOFError => e
        raised = e
        hello(env)
      end)
      expect(raised).to be_a(PitchforkRs::ClientShutdown).and have_attributes(backtrace: [])
    end

    it "is no error of the application" do
      expect(cut_off(->(env) { [200, {}, [env["rack.input"].read]] })).to eq("")
      expect(log.string).to be_empty
    end

    it "gives what has come to one who asks for no more" do
      expect(cut_off(->(env) { [200, {}, [env["rack.input"].read(4)]] })).to end_with("\r\n\r\nhalf")
    end
  end

  describe "a client that waits for 100 Continue" do
    def expecting(app, version: "1.1", early: "")
      client, peer = UNIXSocket.pair
      client.write("POST / HTTP/#{version}\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n#{early}")
      answers = Thread.new do
        first = client.readpartial(1000)
        client.write("data"[early.size..]) if first.start_with?("HTTP/1.1 100")
        [first, client.read]
      end
      stressed { handler(app, buffer_size: 10).serve(peer) }
      peer.close
      answers.value
    end

    it "is told when the application reads" do
      first, rest = expecting(->(env) { [200, {}, [env["rack.input"].read]] })
      expect(first).to eq("HTTP/1.1 100 Continue\r\n\r\n")
      expect(RawResponse.parse(rest)).to have_attributes(status: 200, body: "data")
    end

    it "is not told when the application does not read" do
      expect(expecting(method(:hello)).first).to start_with("HTTP/1.1 200 OK\r\n")
    end

    it "is not told when it has begun to send" do
      first, = expecting(->(env) { [200, {}, [env["rack.input"].read(2)]] }, early: "da")
      expect(first).to start_with("HTTP/1.1 200 OK\r\n")
    end

    it "is not told, and does not know what it asks for, in HTTP/1.0" do
      first, = expecting(->(env) { [200, {}, [env["rack.input"].read(4)]] }, version: "1.0", early: "data")
      expect(first).to start_with("HTTP/1.1 200 OK\r\n")
    end
  end
end
