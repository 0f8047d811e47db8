# frozen_string_literal: true

require_relative "../errors"
require_relative "../source_file"

module PitchforkRs
  class Configurator
    # Evaluates the configuration file, and turns whatever goes wrong in it into a line that names the place.
    # @api private
    class ConfigFile
      NAMES = %i[BootFailure ClientShutdown Configurator ForkFailure HttpParser HttpParserError HttpServer Info MemInfo
                 REFORKING_AVAILABLE ReforkCondition VERSION Worker].freeze
      OWN_NAMES = %i[DEFAULTS DEFAULT_FILE RACKUP].freeze
      private_constant :NAMES, :OWN_NAMES

      # @param path [String]
      # @param verifier [SettingVerifier]
      def initialize(path, verifier)
        @path = path
        @verifier = verifier
      end

      # Constants in the file resolve in {FileScope}, and outside of its own classes in `Configurator` as well, before
      # they do at the top level: keep the names of internal ones there unlikely.
      #
      # @param configurator [Configurator] the file's self
      # @raise [ConfigurationError] if the file cannot be read, or raises; `cause` is the original exception
      def evaluate(configurator)
        source = read
        FileScope.offer(PitchforkRs, NAMES)
        FileScope.offer(Configurator, OWN_NAMES)
        begin
          FileScope.evaluate(configurator, source, @path, 1)
        rescue ConfigurationError
          raise
        rescue StandardError, ScriptError => e
          report(e, configurator)
        end
      end

      private

      def read
        SourceFile.read(@path)
      rescue SystemCallError => e
        # A fresh exception of the class has the system's words alone, without the path and the call.
        @verifier.complain("configuration file cannot be read (#{e.class.new.message})", at: @path)
      end

      def report(error, configurator)
        if error.is_a?(SyntaxError) && error.message.b.start_with?("#{@path}:".b)
          @verifier.complain(syntax_summary(error.message), at: nil)
        elsif directive_missing?(error, configurator)
          @verifier.unknown_directive(error.name, at: place(error))
        else
          @verifier.complain("#{subject(error)}: #{summary(error)}", at: place(error))
        end
      end

      def place(error)
        line = error.backtrace.to_a.filter_map { |frame| frame[/\A#{Regexp.escape(@path)}:(\d+)/, 1] }.first
        line ? "#{@path}:#{line}" : @path
      end

      # The first line says where; newer Rubies say what only beside the caret, in the excerpt that follows.
      def syntax_summary(message)
        [message.lines.first.chomp, message[/\^~* ([^\n]+)/, 1]].compact.join(": ")
      end

      def directive_missing?(error, configurator)
        error.is_a?(NameError) && error.receiver.equal?(configurator)
      rescue ArgumentError # raised where there is no receiver
        false
      end

      # A directive that got the wrong number of arguments fails in a frame of its own.
      def subject(error)
        frame = error.backtrace_locations&.first
        name = frame&.base_label&.to_sym
        return error.class unless error.is_a?(ArgumentError) && Configurator.directives.include?(name)

        frame.path == Configurator.instance_method(name).source_location.first ? name : error.class
      end

      # The message of a missing constant names our namespace, where the user never meant it to be.
      def summary(error)
        missing = error.name if error.instance_of?(NameError) && error.name =~ /\A[[:upper:]]/
        return error.message.lines.first.to_s.chomp unless missing

        "uninitialized constant #{missing}#{"; here it is Pitchfork" if missing == :Unicorn}"
      end
    end
  end
end
