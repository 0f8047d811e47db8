# frozen_string_literal: true

require_relative "../../log/json_formatter"

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

    # @!method log_format(format)
    #   How the default logger writes its lines: `:text`, which is the default, or `:json`, an object a line. A logger
    #   of your own has a format of its own, so the two directives are refused together.
    #   @param format [Symbol] `:text` or `:json`
    #   @raise [ConfigurationError]
    directive :log_format, ValueCheck.one_of(:text, :json), default: :text

    # @!endgroup

    private

    # In the end, because the file may change the default logger, and name these two in any order.
    def complete_logger
      return unless set.key?(:log_format)

      if set.key?(:logger)
        @verifier.complain("log_format: got #{set[:log_format].inspect} and a logger, which has a format of its own; " \
                           "wanted one of them", at: set.place_of(:log_format))
      elsif set[:log_format] == :json
        # A copy, with the same device: another server in this program may want text.
        logger = DEFAULTS[:logger].dup
        logger.formatter = Log::JsonFormatter.new
        @verifier.from(set.place_of(:log_format)) { set[:logger] = logger }
      end
    end
  end
end
