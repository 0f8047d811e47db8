# frozen_string_literal: true

require "fileutils"
require "net/http"
require "rbconfig"
require "socket"
require "timeout"
require_relative "raw_response"
require_relative "server_processes"
require_relative "surroundings"
require_relative "waiting"

# The real command in a process of its own, with its own directory, on a free port of the loopback or on a Unix socket.
class Server
  include Waiting
  include ServerProcesses

  ROOT = File.expand_path("../..", __dir__)
  COMMAND = ["#{ROOT}/exe/pitchfork-rs", "-c", "config.rb", "config.ru"].freeze
  private_constant :COMMAND

  attr_reader :directory, :pid

  # Writes `config.rb` and `config.ru` into the directory, and starts the command there.
  #
  # @param how [Hash] `:listen`, its addresses; `:command`, another Ruby program and its arguments; `:wrapper`, a
  #   command that starts it as its only child and ends with its status; `:inherited`, sockets that it has from a
  #   supervisor, as descriptors from 3 on, and the variables that say so; `:environment`, other variables; `:log`, the
  #   file for what it prints
  def initialize(directory, rackup, config: "", workers: 1, **how)
    @directory = directory
    @sockets, variables = how.fetch(:inherited, [[], {}])
    @environment = Surroundings::ENVIRONMENT.merge(variables, how.fetch(:environment, {}))
    @command = how.fetch(:command, COMMAND)
    @log = how.fetch(:log, "log")
    @listen = Array(how.fetch(:listen, "127.0.0.1:0"))
    @wanted = workers
    FileUtils.mkdir_p(directory)
    write_files(rackup, config)
    wrapper = how.fetch(:wrapper, [])
    @pid = launch(wrapper)
    @end = Process.detach(@pid)
    @pid = alive_until("the wrapped command") { children.first&.pid } if wrapper.any?
  end

  # @!group Files of the server

  def path(name) = File.join(directory, name)

  def write(name, text) = File.write(path(name), text)

  def read(name) = File.exist?(path(name)) ? File.read(path(name)) : ""

  # The lines that the application or its hooks have appended to a file.
  def lines(name) = read(name).lines(chomp: true)

  def log = read(@log)

  # What was logged so far, without times.
  def messages = log.lines(chomp: true).map { |line| line[/ -- \[Pitchfork\]: (.*)/, 1] || line }

  # Lets one go on who waits at the gate; see `ServerExamples#at_gate`.
  def open_gate
    wait_until("somebody at the gate") do
      File.open(path("gate"), File::WRONLY | File::NONBLOCK) { |gate| gate.write("\n") }
    rescue Errno::ENXIO
      false
    end
  end

  # @!endgroup
  # @!group Waiting

  # Waits until the server listens and all its workers wait for requests.
  def wait_until_ready
    alive_until("listening") { addresses.size >= @listen.size }
    wait_for_workers(@wanted)
    self
  end

  # Waits until so many workers, and no others, wait for requests; all of `generation` if that is given.
  def wait_for_workers(count, generation: nil)
    alive_until("#{count} workers, generation #{generation.inspect}") do
      found = workers
      found.size == count && found.all?(&:idle?) && (!generation || found.all? { |one| one.generation == generation })
    end
  end

  # Waits until the only worker is another one than that of this pid, and idle.
  def wait_for_another_worker(pid)
    alive_until("another worker than #{pid}") do
      found = worker
      found&.idle? && found.pid != pid
    end
  end

  def wait_for_log(pattern, count: 1)
    alive_until("#{count} × #{pattern.inspect} in the log") { log.scan(pattern).size >= count }
  end

  # As `wait_until`, but gives up as soon as the server has ended.
  def alive_until(what, &block)
    wait_until(what) { block.call || (ended? && raise("the server has ended before: #{what}\n#{log}")) }
  end

  def ended? = !@end.alive?

  # The exit status, once the server has ended by itself.
  def wait_for_end(seconds: Waiting::PATIENCE)
    @end.join(seconds) || raise(Late, "the server did not end within #{seconds} seconds\n#{log}")
    @end.value
  end

  # @!endgroup
  # @!group Signals

  def signal(name, to: pid) = Process.kill(name, to)

  def stop(name = :TERM)
    signal(name)
    wait_for_end
  end

  # Ends the server if it still runs, and fails if that does not work or leaves anybody behind.
  def clean_up
    signal_if_running(:QUIT)
    wait_for_end
  ensure
    signal_if_running(:KILL)
    survivors = end_survivors
    raise "survived their monitor: #{survivors.join(", ")}" if survivors.any?
  end

  # @!endgroup
  # @!group Clients

  # Where it listens, in the order in which that was logged.
  def addresses = log.scan(/listening on addr=(\S+)/).flatten

  def port = addresses.first[/\d+\z/].to_i

  def connect(address = addresses.first)
    return UNIXSocket.new(address) if address.start_with?("/")

    host, _, port = address.rpartition(":")
    TCPSocket.new(host.delete("[]"), port)
  end

  # Sends bytes as they are, and gives what comes back: the response to one request, or if that says that the connection
  # is closed, or only the end of the connection is its own, all that comes.
  def raw(bytes, address = addresses.first)
    socket = connect(address)
    socket.write(bytes)
    Timeout.timeout(PATIENCE) { read_response(socket, head: bytes.start_with?("HEAD ")) }
  ensure
    socket&.close
  end

  # The same on a connection that is there.
  def read_response(socket, head: false, received: +"".b)
    received << socket.readpartial(65_536) until ResponseEnd.of(received, head: head)
    received
  rescue EOFError
    received
  end

  def exchange(bytes, address = addresses.first) = RawResponse.parse(raw(bytes, address))

  def get(path = "/", headers = {}) = request(Net::HTTP::Get.new(path, headers))

  def post(path, body, headers = {})
    post = Net::HTTP::Post.new(path, { "Content-Type" => "text/plain" }.merge(headers))
    post.body = body
    request(post)
  end

  def request(request)
    http = Net::HTTP.new("127.0.0.1", port)
    http.open_timeout = http.read_timeout = PATIENCE
    # A second attempt would hide that the first one failed.
    http.max_retries = 0
    http.request(request)
  end

  # @!endgroup

  private

  def write_files(rackup, config)
    File.mkfifo(path("gate"))
    addresses = @listen.map { |address| "listen #{address.inspect}\n" }.join
    write("config.rb", "worker_processes #{@wanted}\n#{addresses}#{config}")
    write("config.ru", rackup)
  end

  def signal_if_running(name)
    signal(name) unless ended?
  rescue Errno::ESRCH
    nil # it has just ended
  end

  def launch(wrapper)
    command = [*wrapper, RbConfig.ruby, "-I#{ROOT}/lib", *@command]
    # A supervisor knows the pid before the command is there.
    command = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", *command] if @environment["LISTEN_FDS"]
    passed = @sockets.each_with_index.to_h { |socket, index| [3 + index, socket] }
    Process.spawn(@environment, *command, chdir: directory, in: File::NULL, %i[out err] => path(@log), pgroup: true,
                                          **passed)
  end
end

# What examples that are tagged `:server` can do.
module ServerExamples
  include Waiting

  TIME_LIMIT = 120

  HELLO = "run ->(_env) { [200, {}, ['hello']] }"

  # Code that waits until the example calls {Server#open_gate}. Open for both directions, because only the opening of a
  # FIFO is broken off by signals.
  AT_GATE = "File.open('gate', 'r+', &:gets)"

  # An application that takes until then to load, and a configuration with which the first refork does.
  SLOW_BOOT = "#{AT_GATE}\n#{HELLO}".freeze
  SLOW_REFORK = "after_mold_fork { |_, mold| #{AT_GATE} if mold.generation == 1 }".freeze

  # The connection is closed behind the response to it, so that this can be read to the end of file.
  GET = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

  # Starts a server; it is ended with the example. Unless `ready` is false it is ready to serve when this returns.
  def start(rackup = HELLO, ready: true, **options)
    @servers ||= []
    server = Server.new(File.join(Dir.pwd, "server-#{@servers.size}"), rackup, **options)
    @servers << server
    ready ? server.wait_until_ready : server
  end

  # Code that appends the value of an expression to a file, as a line of its own.
  def noting(file, expression) = "File.write('#{file}', \"\#{#{expression}}\\n\", mode: 'a')"

  # One after the other, and each of them whatever happens to the others.
  def clean_up_servers
    server = Array(@servers).shift or return
    server.clean_up
  ensure
    clean_up_servers if server
  end
end

RSpec.configure do |config|
  config.define_derived_metadata(:server) { |metadata| metadata[:in_tmpdir] = true }
  config.include(ServerExamples, :server)
  config.around(:each, :server) { |example| Timeout.timeout(ServerExamples::TIME_LIMIT) { example.run } }
  config.after(:each, :server) { clean_up_servers }
end
