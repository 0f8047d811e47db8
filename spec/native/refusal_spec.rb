# frozen_string_literal: true

require "support/in_process"

# Requests that never reach the application.
RSpec.describe PitchforkRs::RequestHandler, :in_process, :gc_stress do
  def refused(request)
    called = false
    bytes = serve(request, lambda { |env|
      called = true
      hello(env)
    })
    expect([called, env]).to eq([false, nil])
    bytes
  end

  def expect_refusal(request, status, reason)
    expect(refused(request)).to match(
      %r{\AHTTP/1\.1 #{status} #{reason}\r\nDate: [^\r\n]* GMT\r\nContent-Length: 0\r\nConnection: close\r\n\r\n\z}
    )
    expect(log.string).to match(/\ADEBUG answered #{status} to a Unix socket: [^\n]+\n\z/)
  end

  chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

  {
    "no version" => "GET /\r\n\r\n", "a malformed version" => "GET / HTTP/1.x\r\n\r\n",
    "a method that is no token" => "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a control byte in the target" => "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    "a space in the target" => "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "a target that is not UTF-8" => "GET /\xFF HTTP/1.1\r\nHost: a\r\n\r\n",
    "two empty lines at the start" => "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "a bare LF" => "GET / HTTP/1.1\nHost: a\r\n\r\n",
    "a bare LF between fields" => "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
    "a bare CR" => "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
    "a name that is no token" => "GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n",
    "a space before the colon" => "GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
    "an empty name" => "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
    "NUL in a value" => "GET / HTTP/1.1\r\nHost: a\r\nX: b\0\r\n\r\n",
    "line folding" => "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
    "Content_Length" => "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 1\r\n\r\nx",
    "Transfer_Encoding" => "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no host" => "GET / HTTP/1.1\r\n\r\n", "two hosts" => "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "a host that is none" => "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "length and coding" =>
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "an empty length" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
    "a signed length" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
    "a list of lengths" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx",
    "a length beyond 2^63" => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n",
    "chunks in HTTP/1.0" => "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked twice" => "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "a chunk without a size" => "#{chunked}\r\n\r\n",
    "a chunk size with 0x" => "#{chunked}0x1\r\na\r\n0\r\n\r\n",
    "a signed chunk size" => "#{chunked}+1\r\na\r\n0\r\n\r\n",
    "a chunk size too long" => "#{chunked}00000000000000001\r\na\r\n",
    "a chunk longer than its size" => "#{chunked}1\r\nab\r\n0\r\n\r\n",
    "LF in a chunk extension" => "#{chunked}1;a\n\r\na\r\n0\r\n\r\n",
    "a trailer that is no field" => "#{chunked}0\r\nX : a\r\n\r\n"
  }.each do |what, request|
    it "answers 400 to #{what}" do
      expect_refusal(request.b, 400, "Bad Request")
    end
  end

  it "answers 400 to chunk extensions beyond 4 KiB" do
    expect_refusal("#{chunked}1;#{"x" * 5000}\r\na\r\n0\r\n\r\n", 400, "Bad Request")
  end

  it "answers 414 to a target beyond 16 KiB" do
    expect_refusal(get("/#{"x" * 17_000}"), 414, "(URI|Content|Request-URI) Too Long")
  end

  it "answers 417 to an expectation it does not know" do
    expect_refusal(post("data", "Expect: miracles"), 417, "Expectation Failed")
  end

  it "answers 431 to too many fields" do
    expect_refusal(get("/", *Array.new(130) { |i| "X-#{i}: a" }), 431, "Request Header Fields Too Large")
  end

  it "answers 431 to a head that is too long, before it has all of it" do
    expect_refusal("GET / HTTP/1.1\r\nHost: a\r\nX: #{"x" * 130_000}", 431, "Request Header Fields Too Large")
  end

  { "CONNECT" => "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "a coding it does not know" =>
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" }.each do |what, request|
    it "answers 501 to #{what}" do
      expect_refusal(request, 501, "Not Implemented")
    end
  end

  { "HTTP/2" => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.2" => "GET / HTTP/1.2\r\nHost: a\r\n\r\n" }.each do |what, request|
    it "answers 505 to #{what}" do
      expect_refusal(request, 505, "HTTP Version [nN]ot [sS]upported")
    end
  end

  it "skips one empty line at the start" do
    expect(exchange("\r\n#{get}").status).to eq(200)
  end

  ["", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n"].each do |beginning|
    it "says and logs nothing when the client leaves after #{beginning.inspect}" do
      client, peer = UNIXSocket.pair
      client.write(beginning)
      client.close_write
      expect(stressed { handler(method(:hello)).serve(peer) }).to be_nil
      peer.close
      expect([client.read, log.string]).to eq(["", ""])
    end
  end

  it "says and logs nothing when the client leaves in the middle of a chunked body" do
    client, peer = UNIXSocket.pair
    client.write("#{chunked}5\r\nab")
    client.close_write
    expect(stressed { handler(method(:hello)).serve(peer) }).to be_nil
    peer.close
    expect([client.read, log.string]).to eq(["", ""])
  end

  it "lets the client see the answer although it is still sending" do
    expect(refused("BAD\r\n\r\n#{"x" * 200_000}")).to start_with("HTTP/1.1 400 ")
  end
end
