# frozen_string_literal: true

require_relative "version"

module PitchforkRs
  # Which build of the extension this Ruby loads. A precompiled gem has one for each Ruby that it is for, in a directory
  # named after it. What was compiled here, in a checkout or when the gem was installed, lies beside this file.
  module Extension
    # There is no build that this Ruby can load. The message is one line that says what to do instead.
    class Unavailable < LoadError; end

    FILE = "pitchfork_rs.so"
    FROM_SOURCE = "`gem install pitchfork-rs --platform ruby`, or `force_ruby_platform: true` in the Gemfile, " \
                  "builds it here"
    private_constant :FILE, :FROM_SOURCE

    class << self
      # @param directory [String] where the builds are
      # @return [void]
      # @raise [Unavailable]
      def load(directory = __dir__)
        build = find(directory)
        require build
      rescue LoadError => e
        raise if e.is_a?(Unavailable) || build == File.join(directory, FILE)

        reason = e.message.lines.first.chomp
        raise Unavailable, "this precompiled gem does not fit this system: #{reason}; #{FROM_SOURCE}"
      end

      # @param directory [String]
      # @param ruby [String] the version of a Ruby
      # @return [String] the file of the build for that Ruby
      # @raise [Unavailable]
      def find(directory, ruby = RUBY_VERSION)
        precompiled = Dir.glob("*.*/#{FILE}", base: directory).to_h { |file| [File.dirname(file), file] }
        file = precompiled.fetch(ruby[/\A\d+\.\d+/], FILE)
        path = File.join(directory, file)
        return path if File.exist?(path)
        raise Unavailable, not_built(directory) if precompiled.empty?

        raise Unavailable, "this precompiled gem is for Ruby #{list(precompiled.keys)}, and this is Ruby #{ruby}; " \
                           "#{FROM_SOURCE}"
      end

      private

      def not_built(directory)
        "the extension is not built: run bin/setup in #{File.expand_path("../..", directory)}"
      end

      def list(versions)
        *others, last = versions.sort_by { |version| version.split(".").map(&:to_i) }
        others.empty? ? last : "#{others.join(", ")} and #{last}"
      end
    end
  end
end
