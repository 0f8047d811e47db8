# frozen_string_literal: true

require_relative "raw_response"
require_relative "waiting"

# A client that keeps its connection, and reads one response after the other.
class PersistentClient
  def initialize(socket)
    @socket = socket
    @received = +"".b
  end

  def port = @socket.local_address.ip_port

  def send(bytes) = @socket.write(bytes)

  # Sends a request and reads its response.
  def ask(path = "/", *fields, **how)
    send(self.class.request(path, *fields, **how))
    response(head: how[:method] == "HEAD")
  end

  def self.request(path = "/", *fields, method: "GET", version: "1.1", body: nil)
    fields << "Content-Length: #{body.bytesize}" if body
    "#{method} #{path} HTTP/#{version}\r\nHost: a\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n#{body}"
  end

  # The next response. One that ends with the connection is all that comes.
  def response(head: false)
    read_more until (size = ResponseEnd.of(@received, head: head)) || @ended
    raise "no response: #{@received.inspect}" if @received.empty?

    RawResponse.parse(@received.slice!(0, size || @received.bytesize))
  end

  # The status of an interim response, which has nothing but a head.
  def interim
    read_more until @received.include?("\r\n\r\n") || @ended
    RawResponse.parse(@received.slice!(/.*?\r\n\r\n/m)).status
  end

  # What comes until the server closes the connection.
  def rest
    read_more until @ended
    @received
  end

  # Whether the server has closed the connection without another word.
  def ended? = rest.empty?

  # Whether the server says nothing, and leaves the connection open, for so long.
  def silent_for?(seconds) = @received.empty? && !@socket.wait_readable(seconds)

  def close = @socket.close

  private

  def read_more
    @socket.wait_readable(Waiting::PATIENCE) || raise(Waiting::Late, "nothing came behind #{@received[-200..].inspect}")
    @received << @socket.readpartial(65_536)
  rescue EOFError, Errno::ECONNRESET
    @ended = true
  end
end
