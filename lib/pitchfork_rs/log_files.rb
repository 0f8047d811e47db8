# frozen_string_literal: true

module PitchforkRs
  # The files that a process of the server logs to: what standard output and standard error are sent to, and what the
  # logger writes to. They are opened anew after somebody, such as logrotate, has renamed them.
  # @api private
  class LogFiles
    # Not `$stdout` and `$stderr`: those may be something else by now, and programs that are run write to these.
    STANDARD_OUTPUT = STDOUT # rubocop:disable Style/GlobalStdStream
    STANDARD_ERROR = STDERR # rubocop:disable Style/GlobalStdStream
    private_constant :STANDARD_OUTPUT, :STANDARD_ERROR

    # @param config [Configurator]
    def initialize(config)
      # First standard error, where the logger may tell of what fails.
      @streams = { stderr_path: STANDARD_ERROR, stdout_path: STANDARD_OUTPUT }
      @paths = @streams.keys.to_h { |directive| [directive, config[directive]] }.compact
      @places = @paths.to_h { |directive, _| [directive, config.set.place_of(directive)] }
      @logger = config[:logger]
    end

    # Makes sure that the files can be opened, before anything is done that this would stop.
    #
    # @raise [ConfigurationError] if one cannot
    # @return [void]
    def check
      @paths.each do |directive, path|
        File.open(path, "a").close
      rescue SystemCallError => e
        raise ConfigurationError, "#{@places[directive]}: #{directive}: cannot open #{path} (#{e.class.new.message})"
      end
    end

    # Sends the standard streams to their files.
    #
    # @raise [SystemCallError] if one cannot be opened
    # @return [void]
    def redirect
      @paths.each { |directive, path| send_to(path, @streams.fetch(directive)) }
    end

    # Opens the files by their names again. One that cannot be opened stays as it is, which is logged.
    #
    # @return [void]
    def reopen
      @paths.each { |directive, path| attempt(path) { send_to(path, @streams.fetch(directive)) } }
      reopen_logger
    end

    # @return [File, nil] what the logger writes to, if that is a file and no standard stream
    def logger_file
      device = log_device&.dev
      device if device.is_a?(File) && !@streams.value?(device)
    end

    private

    # Opens first: the old file must stay if there is no new one, and whoever writes meanwhile finds one of the two.
    def send_to(path, stream)
      File.open(path, "a") { |file| stream.reopen(file) }
      stream.sync = true
    end

    def reopen_logger
      if (path = log_device&.filename)
        # The logger closes its file before it opens the new one, and would be left with none.
        attempt(path) { File.open(path, "a") { @logger.reopen } }
      elsif (file = logger_file)
        attempt(file.path) { send_to(file.path, file) } if file.path.to_s.start_with?("/")
      elsif @logger.respond_to?(:reopen)
        attempt("the logger") { @logger.reopen }
      end
    end

    # The standard library's loggers, and those derived from them, tell what they write to in no other way.
    def log_device
      device = @logger.instance_variable_get(:@logdev) if @logger.is_a?(Logger)
      device if device.respond_to?(:filename) && device.respond_to?(:dev)
    end

    def attempt(what)
      yield
    rescue StandardError => e
      @logger.error("cannot reopen #{what}: #{e.message}")
    end
  end
end
