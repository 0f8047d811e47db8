# frozen_string_literal: true

module PitchforkRs
  # The `rack.hijack` of a request, and its `pitchfork.socket`: as the latter it does whatever the socket of the
  # connection does, which is built when it is asked for.
  # @api private
  class Hijack
    # Asked of each object by `Array#flatten`, `puts` and the like, which may come after the request.
    def respond_to_missing?(name, _include_private = false)
      look.respond_to?(name)
    rescue IOError
      false
    end

    def method_missing(name, ...)
      look.respond_to?(name) ? to_io.public_send(name, ...) : super
    end
  end
end
