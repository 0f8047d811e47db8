# frozen_string_literal: true

module PitchforkRs
  # The file that tells other programs the monitor's pid.
  # @api private
  class PidFile
    # @param path [String]
    # @param place [String] where the configuration names it
    def initialize(path, place)
      @path = path
      @place = place
    end

    # @raise [ConfigurationError] if the file names a process that runs, or is anything but a pid file
    # @return [void]
    def check
      text = File.read(@path, 64)
      return if text.nil? || text.strip.empty?

      pid = text[/\A\s*(\d{1,9})\s*\z/, 1]&.to_i
      complain("#{@path} is no pid file: name another one") unless pid
      complain("#{@path} names process #{pid}, which is running: stop it first") if running?(pid)
    rescue Errno::ENOENT
      nil
    rescue SystemCallError => e
      complain("cannot read #{@path} (#{e.class.new.message})")
    end

    # Writes the file, in the place of one that a process has left behind.
    #
    # @raise [ConfigurationError] as {#check}, and if the file cannot be written
    # @return [void]
    def write
      create
    rescue Errno::EEXIST
      replace
    rescue SystemCallError => e
      complain_of_writing(e)
    end

    # Removes the file, if it names this process: not if it is another's by now, and not in a child.
    #
    # @return [void]
    def remove
      File.unlink(@path) if File.read(@path).to_i == Process.pid
    rescue SystemCallError
      nil
    end

    private

    def create
      File.open(@path, File::WRONLY | File::CREAT | File::EXCL, 0o644) { |file| file.puts(Process.pid) }
    end

    def replace
      check
      File.unlink(@path)
      create
    rescue SystemCallError => e
      complain_of_writing(e)
    end

    def complain_of_writing(error)
      complain("cannot write #{@path} (#{error.class.new.message})")
    end

    # In a container each start may get the same pid, which a file from before then names.
    def running?(pid)
      return false if pid.zero? || pid == Process.pid

      Process.kill(0, pid)
      true
    rescue Errno::ESRCH
      false
    rescue Errno::EPERM
      true
    end

    def complain(message)
      raise ConfigurationError, "#{@place}: pid: #{message}"
    end
  end
end
