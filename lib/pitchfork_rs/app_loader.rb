# frozen_string_literal: true

require "shellwords"
require_relative "errors"
require_relative "source_file"

module PitchforkRs
  # Turns the path of a `.ru` or `.rb` file into a Rack application, adding no middleware of its own.
  class AppLoader
    OPTIONS_LINE = /^#\\(.*)/n
    private_constant :OPTIONS_LINE

    # @return [String] the file, as it was given
    attr_reader :path

    # @param path [String] a `.ru` file, or a `.rb` file that is looked up as given and then in `$LOAD_PATH`
    # @raise [ConfigurationError] if the file has another extension
    def initialize(path)
      @path = path
      return if rackup? || path.end_with?(".rb")

      raise ConfigurationError, "#{path}: wanted a rackup file (.ru) or a Ruby file (.rb)"
    end

    # @return [Boolean] whether the file is there and can be read
    def readable?
      readable_file? || feature?
    end

    # @raise [ConfigurationError] if the file cannot be read
    # @return [void]
    def verify
      return if readable?

      raise ConfigurationError, "#{path}: #{File.exist?(path) ? "is not a readable file" : "no such file"}"
    end

    # Loads the application. The exceptions of its code pass through, with the file's own lines in their backtraces.
    #
    # @return [#call] the Rack application
    # @raise [ConfigurationError] if a `.rb` file defines no constant of its name, or a file has gone
    def call
      rackup? ? load_rackup : load_ruby
    end

    # The words of the first line that starts with `#\` in a `.ru` file: options of the command line.
    #
    # @return [Array<String>] empty if there is no such line
    # @raise [ConfigurationError] if a quotation mark in it is not closed
    def options_line
      # As bytes: the file may be written in an encoding that only its magic comment tells.
      line = rackup? ? read.b[OPTIONS_LINE, 1] : nil
      line ? Shellwords.split(line.force_encoding(Encoding::UTF_8).strip) : []
    rescue ArgumentError => e
      raise ConfigurationError, "#{options_place}: options line: #{e.message.lines.first.chomp}"
    end

    # @return [String] where the options line is, as `path:line`
    # @raise [ConfigurationError] if the file cannot be read
    def options_place
      before = read.b.partition(OPTIONS_LINE).first
      "#{path}:#{before.count("\n") + 1}"
    end

    private

    def rackup?
      path.end_with?(".ru")
    end

    def readable_file?
      File.file?(path) && File.readable?(path)
    end

    def feature?
      !rackup? && !$LOAD_PATH.resolve_feature_path(path).nil?
    end

    def read
      SourceFile.read(path)
    rescue SystemCallError => e
      raise ConfigurationError, "#{path}: cannot be read (#{e.class.new.message})"
    end

    # The text is evaluated alone, not wrapped in lines of ours, so that its magic comments come first and its line
    # numbers are right. The binding is a block's, with a builder as self, inside the top level: constants resolve as
    # in any script, and local variables stay the file's own.
    def load_rackup
      source = read
      require "rack"
      scope = TOPLEVEL_BINDING.eval("::Rack::Builder.new.instance_eval { binding }", __FILE__, __LINE__)
      scope.eval(source, path, 1)
      scope.receiver.to_app
    end

    def load_ruby
      require(readable_file? ? File.expand_path(path) : path)
      names = constant_names
      name = names.find { |candidate| Object.const_defined?(candidate) }
      raise ConfigurationError, "#{path}: does not define #{names.join(" or ")}" unless name

      Object.const_get(name)
    end

    def constant_names
      base = File.basename(path, ".rb")
      [base.split(/[_-]/).map(&:capitalize).join, base.capitalize].uniq.grep(/\A[[:upper:]]\w*\z/)
    end
  end
end
