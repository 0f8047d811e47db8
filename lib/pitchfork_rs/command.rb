# frozen_string_literal: true

require "optparse"
require_relative "app_loader"
require_relative "configuration_report"
require_relative "configurator"
require_relative "errors"
require_relative "extension"
require_relative "version"

module PitchforkRs
  # The command line: `pitchfork-rs [options] [config.ru]`.
  class Command
    NAME = "pitchfork-rs"
    DEFAULT_APP = "config.ru"
    private_constant :NAME, :DEFAULT_APP

    # @param arguments [Array<String>] what follows the command's name
    def initialize(arguments)
      @arguments = arguments
      @rackup = Configurator::RACKUP
      @options = @rackup[:options]
      @given = []
      @reading_file = false
      @evaluated = 0
      @checking = false
    end

    # Starts the server and waits until it ends.
    #
    # @return [Integer, Boolean] what the process should `exit` with: 1 after a line on standard error, if an option or
    #   the configuration is wrong
    # @raise [SystemExit] after the help or the version was shown
    def run
      # Logs go there too, and neither may they wait in a buffer until a worker ends, nor be lost when it is killed.
      $stdout.sync = $stderr.sync = true
      ENV["RACK_ENV"] ||= "development"
      loader = AppLoader.new(parse_arguments)
      seen = parse_options_line(loader)
      require "pitchfork_rs"
      config = Configurator.new(@options)
      verify(loader, config, seen)
      @checking ? report(config, loader) : serve(loader, config)
    rescue OptionParser::ParseError => e
      complain(one_line(e))
    rescue ConfigurationError, BootFailure, Extension::Unavailable => e
      complain(e.message)
    end

    private

    def complain(message)
      warn "#{NAME}: #{message}"
      1
    end

    # A suggestion stands in a line of its own, and without the hyphens.
    def one_line(error)
      guess = error.message[/^Did you mean\?\s+-*(\S+)/, 1]
      error.message.lines.first.chomp + (guess ? "; did you mean --#{guess}?" : "")
    end

    # The configuration may have led to another directory, where the application is looked for then.
    def verify(loader, config, seen)
      loader.verify
      return if seen || loader.options_line.empty?

      raise ConfigurationError, "#{loader.options_place}: options line: is seen too late, after working_directory in " \
                                "#{config.config_file}; move its options there"
    end

    def report(config, loader)
      puts ConfigurationReport.new(config, loader.path)
      0
    end

    # The server calls the application's loader in the mold: the monitor never loads the application.
    def serve(loader, config)
      HttpServer.new(-> { loader.call }, config).start(false).join
    end

    def parse_arguments
      files = parser.parse(@arguments)
      raise ConfigurationError, "wanted one application file, got #{files.join(" ")}" if files.size > 1

      files.first || DEFAULT_APP
    end

    # The arguments come first, because the file's name is among them, yet they win over the file's own line.
    #
    # @return [Boolean] whether there is such a file here
    def parse_options_line(loader)
      return false unless loader.readable?

      @reading_file = true
      surplus = parser.parse(loader.options_line)
      return true if surplus.empty?

      raise ConfigurationError, "#{loader.options_place}: options line: unexpected #{surplus.join(" ")}"
    rescue OptionParser::ParseError => e
      raise ConfigurationError, "#{loader.options_place}: options line: #{one_line(e)}"
    end

    def parser
      @parser ||= OptionParser.new("Usage: #{NAME} [options] [config.ru]", 26, "  ") do |opts|
        ruby_options(opts)
        address_options(opts)
        server_options(opts)
        common_options(opts)
      end
    end

    def ruby_options(opts)
      opts.separator "\nRuby:"
      opts.on("-e", "--eval CODE", "evaluate CODE first") { |code| evaluate(code) }
      opts.on("-r", "--require LIBRARY", "require LIBRARY first") { |library| require_library(library) }
      opts.on("-I", "--include PATH", "look for libraries in PATH first (repeatable)") do |path|
        $LOAD_PATH.unshift(*path.split(File::PATH_SEPARATOR).map { |directory| File.expand_path(directory) })
      end
      opts.on("-d", "--debug", "set $DEBUG") { $DEBUG = true }
      opts.on("-w", "--warn", "turn Ruby's warnings on") { $VERBOSE = true }
    end

    def address_options(opts)
      opts.separator "\nAddresses:"
      opts.on("-l", "--listen ADDRESS", "listen on a port, host:port or /path.sock",
              "(repeatable, default 0.0.0.0:8080)") { |address| @options[:listeners] << address }
      opts.on("-p", "--port PORT", "listen on TCP port PORT (default $PORT, else 8080)") do |text|
        port = text.to_i if text.match?(/\A\d{1,5}\z/)
        raise OptionParser::InvalidArgument, "#{text}, wanted a port from 0 to 65535" unless port&.<=(65_535)

        once(:port) { @rackup.update(port: port, set_listener: true) }
      end
      opts.on("-o", "--host HOST", "listen on the TCP port of HOST (default 0.0.0.0)") do |host|
        once(:host) { @rackup.update(host: host, set_listener: true) }
      end
    end

    def server_options(opts)
      opts.separator "\nServer:"
      opts.on("-c", "--config-file FILE", "read the configuration in FILE",
              "(default #{Configurator::DEFAULT_FILE}, if it exists)") do |file|
        once(:config_file) { @options[:config_file] = file }
      end
      opts.on("-E", "--env NAME", "set RACK_ENV to NAME (default development)") do |name|
        once(:env) { ENV["RACK_ENV"] = name }
      end
      opts.on("--check-config", "check the configuration, show what it comes to, and exit") { @checking = true }
      opts.on("-s", "--server NAME", "ignored, for rackup's sake") do |name|
        warn "#{NAME}: -s #{name} is ignored: this command starts no other server"
      end
      opts.on("-D", "--daemonize", "not supported: use a systemd service") do
        raise ConfigurationError, "-D is not supported: let systemd or another supervisor run it in the background"
      end
    end

    def common_options(opts)
      opts.separator "\nAlso:"
      opts.on("-h", "--help", "show this and exit") { answer(opts.help) }
      opts.on("-v", "--version", "show the version and exit") { answer("#{NAME} v#{VERSION}") }
    end

    # What the arguments said is not said again by the file.
    def once(option)
      return if @reading_file && @given.include?(option)

      @given << option
      yield
    end

    def evaluate(code)
      @evaluated += 1
      TOPLEVEL_BINDING.eval(code, "-e", @evaluated)
    end

    # Only the library's own absence is a mistake of the command line; an error inside it keeps its backtrace.
    def require_library(library)
      require library
    rescue LoadError => e
      raise unless e.path == library

      raise ConfigurationError, "-r #{library}: no such library"
    end

    def answer(text)
      puts text
      exit
    end
  end
end
