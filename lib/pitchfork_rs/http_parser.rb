# frozen_string_literal: true

module PitchforkRs
  # Where configuration files say what each Rack environment shall hold, whatever the request says.
  module HttpParser
    # Merged into each environment last.
    #
    # @example Behind a proxy that speaks HTTPS to clients and does not tell
    #   HttpParser::DEFAULTS["rack.url_scheme"] = "https"
    DEFAULTS = {} # rubocop:disable Style/MutableConstant
  end
end
