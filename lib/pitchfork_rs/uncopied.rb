# frozen_string_literal: true

module PitchforkRs
  # For objects that speak of something of which there is one, as the connection of a request. Error reporters copy
  # environments in depth; the copy of such an object is the object itself.
  # @api private
  module Uncopied
    # @return [self]
    def dup = self

    # @return [self]
    def clone(**) = self

    [Worker, RequestTimeout, Input, Hijack, EarlyHints].each { |copied| copied.include(self) }
  end
end
