# frozen_string_literal: true

require "digest"
require "json"
require "net/http"
require "securerandom"
require "set"

# Clients of the guest book in `examples/rails`, each on a thread of its own and with a session of its own. They compare
# what they get with what they must get.
class RailsGuests
  # Not what was to be expected.
  Wrong = Class.new(StandardError)

  # One of them.
  class Guest
    attr_reader :requests, :entries, :workers

    def initialize(port, name)
      @port = port
      @name = name
      @requests = @entries = @visits = 0
      @workers = Set.new
      @cookie = nil
    end

    # All kinds of requests there are.
    def call
      text = "#{@name}, #{@entries + 1}"
      upload = SecureRandom.bytes(150_000) if @entries.even?
      write(look, text, upload)
      wrong("the page, without #{text}") unless look.include?("<p>#{text}</p>")
      read_again(export.last, text, upload)
      get("/health")
    end

    private

    def look
      page = get("/").body
      visits = page[/Visits: (\d+)/, 1].to_i
      wrong("a session with #{visits} visits instead of #{@visits + 1}") unless visits == (@visits += 1)
      page
    end

    def write(page, text, upload)
      token = page[/name="authenticity_token" value="([^"]+)"/, 1]
      form = [["authenticity_token", token], ["entry[author]", @name], ["entry[text]", text]]
      form << ["entry[upload]", upload, { filename: "upload.bin" }] if upload
      post = Net::HTTP::Post.new("/entries")
      post.set_form(form, "multipart/form-data")
      request(post, "302")
      @entries += 1
    end

    def export
      response = get("/export")
      wrong("an export in one piece") unless response["transfer-encoding"] == "chunked"
      mine = response.body.lines.map { |line| JSON.parse(line) }.select { |entry| entry["author"] == @name }
      wrong("#{mine.size} of #{@entries} entries") unless mine.size == @entries
      mine
    end

    def read_again(entry, text, upload)
      wrong("another text than #{text}") unless entry["text"] == text
      return unless upload
      return if get("/entries/#{entry["id"]}/attachment").body.b == upload

      wrong("another attachment than was sent")
    end

    def get(path) = request(Net::HTTP::Get.new(path), "200")

    def request(request, code)
      request["Cookie"] = @cookie if @cookie
      response = connect { |http| http.request(request) }
      @requests += 1
      wrong("#{response.code} to #{request.method} #{request.path}") unless response.code == code
      @workers << response["x-worker"]
      @cookie = response["set-cookie"][/[^;]+/] if response["set-cookie"]
      response
    end

    def connect(&)
      http = Net::HTTP.new("127.0.0.1", @port)
      http.open_timeout = http.read_timeout = 30
      http.max_retries = 0
      http.start(&)
    end

    def wrong(what) = raise(Wrong, "#{@name} got #{what}")
  end

  attr_reader :failures

  def initialize(port, count)
    @guests = Array.new(count) { |number| Guest.new(port, "guest #{number}") }
    @failures = []
    @threads = []
  end

  def start
    @stop = @leaving = false
    @threads = @guests.map { |guest| Thread.new { stay(guest) } }
  end

  # From now on nobody listening is the end of a visit, not a failure.
  def expect_end = @leaving = true

  # Lets each come to the end of its round, and waits for that.
  def stop
    @stop = true
    @threads.each(&:join)
  end

  def requests = @guests.sum(&:requests)
  def entries = @guests.sum(&:entries)

  # Who answered them: `worker=0 gen=1 pid=123`.
  def workers = @guests.flat_map { |guest| guest.workers.to_a }.uniq

  private

  def stay(guest)
    guest.call until @stop
  rescue StandardError => e
    return if @leaving && (e.is_a?(Errno::ECONNREFUSED) || e.message.end_with?("503 to GET /health"))

    @failures << "#{e.class}: #{e.message}"
  end
end
