# frozen_string_literal: true

require_relative "load"
require_relative "result"
require_relative "server"
require_relative "system_calls"

module Run
  # Measures all servers in one scenario, in turn and over again, so that what happens on the machine meanwhile happens
  # to all of them.
  class Measurement
    COUNTED = 200
    WRONG = [Server::Wrong, Load::Errors, Bench::Tool::Failed, Bench::Stuck].freeze

    # @param limit [Float] seconds after which no further round begins
    def initialize(scenario, contenders, directory:, rounds:, seconds:, limit:)
      @result = Result.new(scenario)
      @servers = contenders.map do |contender|
        Server.new(contender, scenario, File.join(directory, "#{scenario.name}-#{contender.name}"))
      end
      @rounds = rounds
      @seconds = seconds
      @limit = limit
    end

    # @return [Result]
    def run
      @began = Bench.now
      @servers.each(&:start)
      attempt(@servers) { |server| prepare(server) }
      measure_rounds
      # Where the requests are not alike, the count would tell of the application.
      attempt(remaining) { |server| count_calls(server) } unless @result.scenario.mixed?
      @result
    ensure
      stop(@servers.dup)
    end

    private

    def prepare(server)
      @result.commands[server.name] = server.command
      server.wait_until_ready
      loads[server].warm_up
    end

    def loads = @loads ||= Hash.new { |hash, server| hash[server] = Load.new(server) }

    # Those that have done nothing wrong.
    def remaining = @servers.reject { |server| @result.failures.key?(server.name) }

    # A server that fails is out, and the others go on.
    def attempt(servers)
      servers.each do |server|
        yield server
      rescue *WRONG => e
        @result.failures[server.name] = "#{e.message}\n#{server.log_tail}"
      end
    end

    # Each time somebody else begins.
    def measure_rounds
      longest = 0
      @rounds.times do |number|
        began = Bench.now
        return note_time(number) if number.positive? && began + longest > @began + @limit

        attempt(@servers.rotate(number) & remaining) { |server| measure(server, number) }
        longest = [longest, Bench.now - began].max
      end
    end

    def note_time(number)
      @result.notes << "#{number} of #{@rounds} rounds: there was no time for more"
    end

    def measure(server, number)
      before = server.processor_times
      seen = loads[server].run(@seconds)
      used = server.processor_times.map { |pid, time| time - before.fetch(pid, 0) }
      @result.rounds[server.name][number] = { **figures(seen), **figures_of_processor(used, seen.requests) }
    end

    def figures(seen)
      { rate: seen.rate, p50: seen.p50, p99: seen.p99, **seen.kinds.transform_keys { |kind| :"p99_#{kind}" } }
    end

    # @param used [Array<Float>] seconds, by process
    def figures_of_processor(used, requests)
      total = used.sum
      { processor: total * 1e6 / requests, busiest: (100 * used.max / total if total.positive?) }
    end

    def count_calls(server)
      server.wait_until_quiet
      calls = SystemCalls.count(server.pids) do
        loads[server].send_requests(COUNTED)
        server.wait_until_quiet
      end
      each = calls.transform_values { |number| number.fdiv(COUNTED) }
      @result.calls[server.name] = each.sort_by { |_, number| -number }.to_h
    rescue SystemCalls::Unavailable => e
      @result.notes << "system calls of #{server.name} were not counted: #{e.message}"
    end

    # Each of them, whatever happens to the others.
    def stop(servers)
      server = servers.shift or return
      server.stop
    ensure
      stop(servers) if server
    end
  end
end
