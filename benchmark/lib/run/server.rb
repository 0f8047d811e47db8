# frozen_string_literal: true

require "etc"
require "fileutils"
require "net/http"
require_relative "../common/address"
require_relative "../common/session"
require_relative "contender"

module Run
  # A contender that serves a scenario.
  class Server
    # Answers that are not as they should be.
    class Wrong < StandardError; end

    TICKS = Etc.sysconf(Etc::SC_CLK_TCK)
    # Who does not use the processor for so long, in seconds, has come up.
    QUIET = 0.2
    # Whatever the surroundings say must not change what the server does.
    ENVIRONMENT = %w[RACK_ENV PORT WEB_CONCURRENCY].to_h { |name| [name, nil] }.freeze

    attr_reader :place

    # @param directory [String] an empty one, for its files
    def initialize(contender, scenario, directory)
      @contender = contender
      FileUtils.mkdir_p(directory)
      address = scenario.unix ? Bench::Address.new(File.join(directory, "socket")) : Bench::Address.free
      @place = Place.new(scenario:, address:, directory:)
    end

    def name = @contender.name
    def scenario = place.scenario
    def address = place.address
    def log_tail = @session.log_tail

    # The command as it was given, for the record.
    def command
      words = @contender.command(place)
      words.map { |word| word.sub("#{place.directory}/", "").sub("#{Contender::ROOT}/", "") }.join(" ")
    end

    def start
      environment = { **ENVIRONMENT, "BENCHMARK_FILE" => place.write("file", LARGE) }
      @session = Bench::Session.new(*@contender.command(place), log: place.path("log"), environment:)
      self
    end

    def stop
      @session&.kill
    end

    # Waits until it answers and all its processes have come to rest, and looks at the answer to each kind of request.
    def wait_until_ready
      wait_until("listening") { listens? }
      scenario.kinds.each_value { |_, path| verify(path) }
      wait_until_quiet
      self
    end

    # Raises Wrong unless the answer is the one that is right for everybody.
    def verify(path = scenario.path)
      response = exchange(scenario.request(address.unix? ? "localhost" : address.directive, path))
      found = [response.code, response.body.b]
      wanted = ["200", scenario.answer.b]
      raise Wrong, "#{name} answers #{path} with #{brief(found)} instead of #{brief(wanted)}" if found != wanted
    end

    def pids = @session.members

    # Processor time that each of its processes has used up to now, in seconds.
    def processor_times
      pids.to_h { |pid| [pid, processor_time(pid)] }
    end

    # Waits until all workers are there, and none of its processes uses the processor.
    def wait_until_quiet
      since = Bench.now
      before = nil
      wait_until("rest") do
        times = processor_times
        since = Bench.now if times != before || times.size < scenario.workers
        before = times
        Bench.now - since > QUIET
      end
    end

    private

    def brief((status, body))
      "status #{status} and #{body.bytesize} bytes, #{body.byteslice(0, 40).inspect}"
    end

    def wait_until(what, &block)
      Bench.wait_until("#{name}: #{what}", seconds: 20) do
        raise Wrong, "#{name} has ended before: #{what}" if @session.ended?

        block.call
      end
    end

    def listens?
      connect.close
      true
    rescue Errno::ECONNREFUSED, Errno::ENOENT
      false
    end

    def connect
      address.unix? ? UNIXSocket.new(address.directive) : TCPSocket.new("127.0.0.1", address.port)
    end

    def exchange(request)
      socket = connect
      socket.write(request)
      io = Net::BufferedIO.new(socket, read_timeout: 10)
      response = Net::HTTPResponse.read_new(io)
      response.reading_body(io, true) { response.body }
      response
    rescue Net::ProtocolError, Net::ReadTimeout, SystemCallError, EOFError => e
      raise Wrong, "#{name} does not answer: #{e.message} (#{e.class})"
    ensure
      socket&.close
    end

    def processor_time(pid)
      # After the name in parentheses, which may hold anything, user and system time are the 12th and 13th field.
      fields = File.binread("/proc/#{pid}/stat").rpartition(")").last.split
      (Integer(fields[11]) + Integer(fields[12])).fdiv(TICKS)
    rescue *Bench::Session::GONE
      0.0
    end
  end
end
