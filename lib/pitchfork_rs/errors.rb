# frozen_string_literal: true

module PitchforkRs
  # A setting, an option or the configuration file is wrong. The message is one line that names the place, the
  # directive, the value and what is wanted instead.
  class ConfigurationError < ArgumentError; end

  # A process could not start.
  class BootFailure < StandardError; end

  # A process could not be forked.
  class ForkFailure < StandardError; end

  # The client closed its connection while the application was reading the request's body.
  class ClientShutdown < EOFError; end

  # The client sent something that is not a valid HTTP request.
  class HttpParserError < StandardError; end
end
