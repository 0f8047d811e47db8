# frozen_string_literal: true

module PitchforkRs
  # How the Rubies and the releases of Rack that are supported differ, as far as their version has to tell. Whoever can
  # look for a method instead does that.
  # @api private
  module Compatibility
    # From this release of Ruby on, a weak table loses no entries: https://bugs.ruby-lang.org/issues/19531
    RELIABLE_WEAK_TABLES = "3.2.3"
    # From these releases of Rack on, `rack.version` is gone, and `OPTIONS *` has a path.
    RACK_WITHOUT_VERSION = "3.0"
    RACK_WITH_ASTERISK = "3.2"
    private_constant :RELIABLE_WEAK_TABLES, :RACK_WITHOUT_VERSION, :RACK_WITH_ASTERISK

    class << self
      # @param ruby [String] a version of Ruby
      # @return [Boolean] whether an `ObjectSpace::WeakMap` keeps what is in it
      def reliable_weak_tables?(ruby = RUBY_VERSION)
        at_least?(RELIABLE_WEAK_TABLES, ruby)
      end

      # @param rack [String] a release of Rack
      # @return [Boolean] whether the environment has a `rack.version`
      def rack_version_in_environment?(rack = Rack.release)
        !at_least?(RACK_WITHOUT_VERSION, rack)
      end

      # @param rack [String] a release of Rack
      # @return [Boolean] whether `OPTIONS *` has `*` as its `PATH_INFO`, or none
      def asterisk_in_path_info?(rack = Rack.release)
        at_least?(RACK_WITH_ASTERISK, rack)
      end

      private

      def at_least?(wanted, version)
        Gem::Version.new(version) >= Gem::Version.new(wanted)
      end
    end
  end
end
