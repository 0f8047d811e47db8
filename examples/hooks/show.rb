# frozen_string_literal: true

# Starts a server with all hooks, has it boot, serve, refork, run into both timeouts and stop, and prints which hooks
# ran in which process. In one process the order is always the one printed, but that processes end in any order.
#
#   ruby examples/hooks/show.rb

require "net/http"
require "socket"
require "tmpdir"

# The server, and what its hooks have noted.
class Show
  ROOT = File.expand_path("../..", __dir__)
  PATIENCE = 60

  def initialize(directory)
    @notes = File.join(directory, "notes")
    File.write(@notes, "")
    @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    @shown = 0
    @server = spawn(
      { "HOOK_NOTES" => @notes, "HOOK_LISTEN" => "127.0.0.1:#{@port}" },
      "bundle", "exec", "ruby", "exe/pitchfork-rs", "-c", "examples/hooks/config.rb", "examples/hooks/config.ru",
      chdir: ROOT, pgroup: true, in: File::NULL, %i[out err] => File.join(directory, "log")
    )
  end

  # Prints what was noted since the last phase, once the hooks named here have run; the block causes them to.
  def phase(title, hooks)
    yield if block_given?
    wait_for(hooks)
    new = fresh_notes
    @shown += new.size
    puts title
    # "monitor" sorts behind "mold", but comes first.
    new.group_by(&:first).sort_by { |role, _| [role == "monitor" ? 0 : 1, role] }.each do |role, pairs|
      names = pairs.map(&:last)
      names.sort! if names.all?(/after_worker_exit/)
      puts format("  %-16<role>s %<names>s", role: role, names: names.join(", "))
    end
  end

  def get(path)
    http = Net::HTTP.new("127.0.0.1", @port)
    http.max_retries = 0
    http.get(path)
  rescue EOFError
    # The worker has ended without an answer, as it was to.
  end

  def signal(name) = Process.kill(name, @server)

  def stop
    signal(:TERM)
    Process.wait(@server)
  end

  # Whatever went wrong, nothing is left running.
  def clean_up
    Process.kill(:KILL, @server)
    Process.wait(@server)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  end

  private

  def fresh_notes = File.readlines(@notes, chomp: true).drop(@shown).map { |line| line.split("\t") }

  def wait_for(hooks)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until (hooks - fresh_notes.map { |note| note.join(" ") }).empty?
      abort "these hooks did not run: #{hooks.join(", ")}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.02
    end
  end
end

Dir.mktmpdir do |directory|
  show = Show.new(directory)
  show.phase("boot", ["monitor after_monitor_ready", "service gen=0 before_service_worker_ready",
                      "worker=0 gen=0 after_worker_ready"])
  show.phase("request", ["worker=0 gen=0 after_request_complete"]) { show.get("/") }
  show.phase("refork", ["monitor after_worker_exit (mold gen=0)", "monitor after_worker_exit (service gen=0)",
                        "worker=0 gen=1 after_worker_ready", "service gen=1 before_service_worker_ready"]) do
    show.signal(:USR2)
  end
  another_worker = ["monitor after_worker_exit (worker=0 gen=1)", "worker=0 gen=1 after_worker_ready"]
  show.phase("soft timeout", another_worker) { show.get("/slow") }
  show.phase("hard timeout", another_worker) { show.get("/stopped") }
  show.phase("drain", []) { show.stop }
ensure
  show&.clean_up
end
