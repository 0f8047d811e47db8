# frozen_string_literal: true

module PitchforkRs
  # The directives about logs.
  class Configurator
    # @!group Directives

    # @!method logger(object)
    #   Where the server logs to. The default writes to standard error.
    #   @param object [#debug, #info, #warn, #error, #fatal]
    #   @raise [ConfigurationError]
    directive :logger, ValueCheck.responding_to(:debug, :info, :warn, :error, :fatal),
              default: Logger.new($stderr, progname: "[Pitchfork]", formatter: Logger::Formatter.new)

    # @!endgroup
  end
end
