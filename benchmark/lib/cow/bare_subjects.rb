# frozen_string_literal: true

require_relative "../common/client"
require_relative "subject"

module Cow
  # The application without a server: what a cluster has to hold at least.
  class BareSubject < Subject
    PROGRAM = File.expand_path("bare.rb", __dir__)
    CALLED = /^(?<pid>\d+) (?<code>\d*)$/

    private

    def start
      input, @orders = IO.pipe
      @orders.sync = true
      @session = session(RbConfig.ruby, PROGRAM, input:)
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

    # Calls the application so often in each process.
    # @return [Hash{Integer => Integer, nil}] bytes of machine code by pid
    def call(times)
      order("call #{times}").scan(CALLED).to_h do |pid, code|
        [Integer(pid), code.empty? ? nil : Integer(code)]
      end
    end
  end

  # One process.
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

  # Children of one warm process. They dirty what the application dirties, and nothing else.
  class Forks < BareSubject
    NAME = "forks"
    TITLE = "bare forks"

    def stages
      call(amounts.warm)
      order("fork #{amounts.workers}")
      { forked: sample(amounts.first), later: sample(amounts.share) }
    end

    private

    def sample(times)
      @calls = @calls.to_i + times
      children = call(times).each_with_index.map do |(pid, code_bytes), number|
        Row.of("child #{number}", pid, code_bytes:, calls: @calls)
      end
      Sample.new([Row.of("parent", @session.pid, calls: amounts.warm), *children])
    end
  end
end
