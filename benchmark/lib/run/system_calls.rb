# frozen_string_literal: true

require "tempfile"
require_relative "../common/clock"
require_relative "../common/tool"

module Run
  # Counts the system calls of running processes by strace.
  module SystemCalls
    # Why nothing can be counted here.
    class Unavailable < StandardError; end

    module_function

    # Calls by name while the block runs, in all threads of these processes and in their children.
    # @return [Hash{String => Integer}]
    def count(pids, &)
      raise Unavailable, "strace is not installed" unless Bench::Tool.there?("strace")

      Tempfile.create("strace") do |summary|
        attached(pids, summary.path, &)
        parse(summary.read)
      end
    end

    # Reads the table of `strace -c`.
    def parse(table)
      table.lines.filter_map do |line|
        _share, _seconds, _each, calls, *errors, name = line.split
        [name, Integer(calls)] if calls&.match?(/\A\d+\z/) && errors.size <= 1 && name != "total"
      end.to_h
    end

    def attached(pids, summary)
      reader, writer = IO.pipe
      command = ["strace", "-f", "-c", "-o", summary, *pids.flat_map { |pid| ["-p", pid.to_s] }]
      pid = Process.spawn(*command, in: File::NULL, out: File::NULL, err: writer, pgroup: true)
      writer.close
      wait_until_attached(reader, pids.size)
      yield
    ensure
      # Told to end, it lets go of the processes and writes its table.
      end_strace(pid) if pid
      reader&.close
    end

    def wait_until_attached(reader, wanted)
      said = +""
      deadline = Bench.now + 10
      until said.scan(" attached").size >= wanted
        raise Unavailable, "strace does not attach: #{said}" unless reader.wait_readable([deadline - Bench.now, 0].max)

        said << reader.readpartial(4096)
      end
    rescue EOFError
      raise Unavailable, "strace cannot attach: #{said.lines.first&.strip}"
    end

    def end_strace(pid)
      Process.kill(:INT, pid)
      Process.wait(pid)
    rescue Errno::ESRCH
      nil
    end
    private_class_method :attached, :wait_until_attached, :end_strace
  end
end
