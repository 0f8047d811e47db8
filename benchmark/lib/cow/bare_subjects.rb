# frozen_string_literal: true

require_relative "../common/client"
require_relative "subject"

module Cow
  # The application without a server: what a cluster has to hold at least.
  class BareSubject < Subject
    PROGRAM = File.expand_path("bare.rb", __dir__)
    LIBRARIES = [].freeze
    CALLED = /^(?<pid>\d+) (?<code>\d*)$/

    private

    def start
      input, @orders = IO.pipe
      @orders.sync = true
      @session = session(RbConfig.ruby, *self.class::LIBRARIES.map { |path| "-r#{path}" }, PROGRAM, input:)
      @done = 0
    ensure
      input&.close
    end

    # Has it done, and returns what it has printed meanwhile.
    def order(line)
      from = File.size(@session.log)
      @orders.puts(line)
      @done += 1
      wait_until(line) { File.readlines(@session.log, chomp: true).count("done") == @done }
      File.binread(@session.log, nil, from)
    end

    # Calls the application so often in the process, or in each child.
    # @return [Hash{Integer => Integer, nil}] bytes of machine code by pid
    def call(*times)
      order("call #{times.join(" ")}").scan(CALLED).to_h do |pid, code|
        [Integer(pid), code.empty? ? nil : Integer(code)]
      end
    end
  end

  # One process, in which there is nothing but Rack and the application: what else is loaded moves the collections while
  # it gets warm, and so what it holds then.
  class Alone < BareSubject
    NAME = "alone"
    TITLE = "one warm process"

    def stages
      { warm: sample(amounts.warm), later: sample(amounts.share) }
    end

    private

    def sample(times)
      @calls = @calls.to_i + times
      Sample.new(call(times).map { |pid, code_bytes| Row.of("process", pid, code_bytes:, calls: @calls) })
    end
  end

  # Children of one warm process. They dirty what the application dirties, and nothing else. After the first calls each
  # makes as many as one of this server's workers has answered in the same round: the kernel does not share out equally,
  # and one that serves most of all requests writes more than four that serve a quarter.
  class Forks < BareSubject
    NAME = "forks"
    TITLE = "bare forks"
    LIBRARIES = [File.expand_path("bare_heap.rb", __dir__)].freeze

    def stages
      call(amounts.warm)
      order("fork #{amounts.workers}")
      first = Array.new(amounts.workers, amounts.first)
      { forked: sample(first), later: sample(first, shares) }
    end

    private

    # Equal ones if this server is not measured.
    def shares
      forked, later = earlier["pitchfork-rs"]&.values_at(:forked, :later)
      return Array.new(amounts.workers, amounts.share) unless later

      later.worker_calls.zip(forked.worker_calls).map { |after, before| after - before }
    end

    # @param calls [Array<Array<Integer>>] of each child, the last ones still to be made
    def sample(*calls)
      sums = calls.transpose.map(&:sum)
      children = call(*calls.last).each_with_index.map do |(pid, code_bytes), number|
        Row.of("child #{number}", pid, code_bytes:, calls: sums[number])
      end
      Sample.new([Row.of("parent", @session.pid, calls: amounts.warm), *children])
    end
  end
end
