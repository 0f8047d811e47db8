# frozen_string_literal: true

module PitchforkRs
  # The directives about files and directories.
  class Configurator
    # @!group Directives

    setting :stdout_path, ValueCheck.path(nil_resets: true)
    setting :stderr_path, ValueCheck.path(nil_resets: true)
    setting :pid, ValueCheck.path(nil_resets: true)
    setting :working_directory, ValueCheck.path

    # Sends standard output to the end of a file, from the start of the server on. The file is made if need be, and
    # opened anew at `HUP`.
    #
    # @param path [String, Pathname, nil] relative to the working directory; `nil` leaves the stream as it is
    # @raise [ConfigurationError] if there is no such directory
    def stdout_path(path)
      set_file(:stdout_path, path)
    end
    directive_method :stdout_path

    # As {#stdout_path}, for standard error, which is where the default logger writes to.
    #
    # @param path [String, Pathname, nil]
    # @raise [ConfigurationError] if there is no such directory
    def stderr_path(path)
      set_file(:stderr_path, path)
    end
    directive_method :stderr_path

    # Writes the monitor's pid to a file, as soon as the addresses are bound, and removes it in the end. A file that
    # names a process which runs stops the start; one that was left behind is replaced.
    #
    # @param path [String, Pathname, nil] relative to the working directory; `nil` is for no such file
    # @raise [ConfigurationError] if there is no such directory
    def pid(path)
      set_file(:pid, path)
    end
    directive_method :pid

    # Changes the directory, here and now: relative paths in the lines that follow begin there, and so does that of the
    # application.
    #
    # @param path [String, Pathname]
    # @raise [ConfigurationError] if there is no such directory, or it must not be entered
    def working_directory(path)
      directory = expand_path(:working_directory, path)
      Dir.chdir(directory)
      # As a shell would: programs that are run find the path by which the operator knows it, symbolic links included.
      ENV["PWD"] = set[:working_directory] = directory
    rescue SystemCallError => e
      @verifier.reject(:working_directory, path, "wanted a directory to go to (#{e.class.new.message})")
    end
    directive_method :working_directory

    # @!endgroup

    private

    def set_file(directive, path)
      return set[directive] = nil if path.nil?

      file = expand_path(directive, path)
      if File.directory?(file)
        @verifier.reject(directive, path, "wanted a file, this is a directory")
      elsif !File.directory?(File.dirname(file))
        @verifier.reject(directive, path, "wanted a file in a directory that exists, there is no #{File.dirname(file)}")
      end
      set[directive] = file
    end

    def expand_path(directive, path)
      @verifier.verify(directive, SETTING_DEFINITIONS[directive].check, path)
      File.expand_path(path)
    rescue ConfigurationError
      raise
    rescue ::ArgumentError => e
      # An unknown user after "~".
      @verifier.reject(directive, path, "which is no valid path (#{e.message})")
    end
  end
end
