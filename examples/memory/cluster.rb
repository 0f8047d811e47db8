# frozen_string_literal: true

require "net/http"
require "socket"
require "tempfile"
require_relative "processes"

# A running server: started on a free port in a process group of its own, asked, observed, and stopped in any case.
class Cluster
  class Failure < StandardError; end

  WORKERS = 4 # as both configurations say
  ROOT = File.expand_path("../..", __dir__)
  # In the checkout itself there need be no command of that name among the gems' commands.
  COMMAND = %w[bundle exec ruby exe/pitchfork-rs].freeze
  STOP_WITHIN = 20
  LOG_TAIL = 30

  def self.run(config, command: COMMAND)
    cluster = new(config, command)
    yield cluster
  rescue Failure => e
    raise Failure, "#{e.message}\n#{cluster&.log_tail}"
  ensure
    cluster&.stop
  end

  attr_reader :monitor

  def initialize(config, command)
    @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    @log = Tempfile.new("pitchfork-rs-demo")
    @answered = []
    @monitor = spawn(
      { "DEMO_LISTEN" => "127.0.0.1:#{@port}" },
      *command, "-c", "examples/memory/#{config}", "examples/memory/config.ru",
      chdir: ROOT, pgroup: true, in: File::NULL, out: @log.path, err: %i[child out]
    )
  end

  def children
    Processes.children_of(@monitor)
  end

  # Repeats the block until it returns something. Its argument is for saying how far it has come.
  def wait_until(what, seconds:, progress:)
    deadline = now + seconds
    loop do
      result = yield and return result

      raise Failure, "the server ended while waiting: #{what}" if Process.waitpid(@monitor, Process::WNOHANG)
      raise Failure, "not reached within #{seconds} s: #{what}\n#{overview}" if now > deadline

      progress.call("#{what}: #{overview}")
      sleep 0.05
    end
  end

  # Before the application is loaded nobody listens.
  def answers?
    request
  rescue Errno::ECONNREFUSED
    false
  end

  # One request for each worker, all at once. A single one that fails is a failure of the server.
  def ask_all
    threads = WORKERS.times.map do
      Thread.new do
        Thread.current.report_on_exception = false # `value` raises it here
        ask
      end
    end
    @answered |= threads.map(&:value)
  end

  # Whether each worker now there has answered a request.
  def all_answered?
    workers = children.select(&:worker?)
    complete?(workers) && (workers.map(&:pid) - @answered).empty?
  end

  # The newest generation that has a mold.
  def generation
    children.select(&:mold?).map(&:generation).max
  end

  # One mold, each worker of its generation, and nothing else that is coming or going.
  def settled?
    now_there = children
    molds, others = now_there.partition(&:mold?)
    molds.size == 1 && complete?(others) && now_there.map(&:generation).uniq.size == 1
  end

  # Rows of [child, memory], or nil if a process came or went meanwhile.
  def measure
    before = children
    rows = before.map { |child| [child, Processes::Memory.of(child.pid)] }
    rows if settled? && children == before
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  def stop
    return unless @monitor

    begin
      signal(:QUIT, @monitor)
      reaped_within?(STOP_WITHIN)
    ensure # also after a second Ctrl-C
      signal(:KILL, -@monitor) # whoever of the group is left
      reaped_within?(STOP_WITHIN)
    end
    @monitor = nil
    @log.close!
  end

  def log_tail
    lines = File.binread(@log.path).force_encoding(Encoding::UTF_8).scrub.lines
    ["The end of the server's log:", *lines.last(LOG_TAIL).map { |line| "  #{line}" }].join("\n").squeeze("\n")
  end

  private

  def complete?(workers)
    workers.map(&:role).sort == Array.new(WORKERS) { |nr| "worker[#{nr}]" }
  end

  def ask
    request
  rescue SystemCallError, IOError, Timeout::Error, Net::ProtocolError => e
    raise Failure, "a request failed: #{e.class}: #{e.message}"
  end

  # The pid of the worker that answered.
  def request
    http = Net::HTTP.new("127.0.0.1", @port)
    http.open_timeout = http.read_timeout = 30
    http.max_retries = 0
    response = http.get("/?linger")
    response.body[/\Apid=(\d+) /, 1]&.to_i or raise Failure, "unexpected answer: #{response.code} #{response.body}"
  end

  def overview
    children.map { |child| "#{child.role} gen #{child.generation || "?"}" }.join(", ")
  end

  def signal(name, pid)
    Process.kill(name, pid)
  rescue Errno::ESRCH
    nil
  end

  def reaped_within?(seconds)
    deadline = now + seconds
    until Process.waitpid(@monitor, Process::WNOHANG)
      return false if now > deadline

      sleep 0.02
    end
    true
  rescue Errno::ECHILD
    true
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
