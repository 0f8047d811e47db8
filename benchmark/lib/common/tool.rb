# frozen_string_literal: true

require "io/wait"
require_relative "clock"

module Bench
  # Commands that end by themselves.
  module Tool
    # A command that failed, or did not come to its end.
    class Failed < StandardError; end

    module_function

    def there?(command)
      ENV.fetch("PATH").split(File::PATH_SEPARATOR).any? { |directory| File.executable?(File.join(directory, command)) }
    end

    # What a command writes, errors included. Raises Failed with the same if it fails. It is ended, with all that it
    # started, when its time is over, and when this process is told to end.
    def capture(*command, seconds: 30, environment: {}, directory: Dir.pwd)
      reader, writer = IO.pipe
      pid = Process.spawn(environment, *command, in: File::NULL, %i[out err] => writer, chdir: directory, pgroup: true)
      writer.close
      output = read_all(reader, Bench.now + seconds) or raise Failed, "#{command.first}: no end within #{seconds} s"
      _, status = Process.wait2(pid)
      pid = nil
      raise Failed, "#{command.first} failed (#{status}): #{output.strip}" unless status.success?

      output
    rescue Errno::ENOENT
      raise Failed, "wants the command #{command.first}, which is not installed"
    ensure
      [reader, writer].each(&:close)
      end_group(pid) if pid
    end

    # Up to the end of file, or nil.
    def read_all(reader, deadline)
      output = +""
      loop do
        left = deadline - Bench.now
        return unless left.positive? && reader.wait_readable(left)

        output << reader.readpartial(16 * 1024)
      rescue EOFError
        return output
      end
    end

    def end_group(leader)
      Process.kill(:KILL, -leader)
      Process.wait(leader)
    rescue Errno::ESRCH
      nil
    end
    private_class_method :read_all, :end_group
  end
end
