# frozen_string_literal: true

require_relative "compatibility"
require_relative "open_ios"

module PitchforkRs
  # What an application may ask about its server, and tell it. The methods that are about processes are native.
  module Info
    @open_ios = OpenIOs.new if Compatibility.reliable_weak_tables?

    class << self
      # @!method connections
      #   How many connections the reactor holds in each state, and how many it has ever seen through. All are 0
      #   without a reactor, but for the last three once there has been one.
      #
      #   @return [Hash{Symbol => Integer}] frozen; `:idle`, between two requests; `:reading`, part of a request is
      #     there; `:ready`, a whole request waits for a worker; `:writing`, a client still takes a response;
      #     `:handed_over`, requests that workers were ever given; `:refused`, those that were ever answered with an
      #     error before a worker saw them; `:closed_by_deadline`, connections that were ever closed because their time
      #     was over

      # Keeps an IO open when {close_all_ios!} is called, for as long as it lives. Does nothing before Ruby 3.2.3.
      #
      # @param io [#to_io]
      # @return [#to_io] the same
      # @raise [ArgumentError] if it is no IO and stands for none
      def keep_io(io)
        @open_ios ? @open_ios.keep(io) : io
      end

      # Keeps several IOs open, as {keep_io}.
      #
      # @param ios [Enumerable<#to_io>]
      # @return [Enumerable<#to_io>] the same
      # @raise [ArgumentError] if one is no IO and stands for none
      def keep_ios(ios)
        ios.each { |io| keep_io(io) }
      end

      # Closes the IOs of this process, such as connections that it has inherited, so that nobody uses them by mistake.
      # Open stay those that are kept, the standard streams, those that do not own their descriptor, what the server's
      # logger writes to, and the listeners. No peer of a connection that another process has open notices.
      #
      # @example Each new mold and worker connects anew
      #   after_mold_fork { |server, mold| Pitchfork::Info.close_all_ios! }
      # @return [void]
      # @raise [NoMethodError] before Ruby 3.2.3, which could forget what is kept
      def close_all_ios!
        unless @open_ios
          raise NoMethodError,
                "close_all_ios! needs Ruby 3.2.3 or later, because Ruby #{RUBY_VERSION} can forget which IOs to keep " \
                "(https://bugs.ruby-lang.org/issues/19531): upgrade Ruby, or close the connections one by one in " \
                "after_mold_fork and after_worker_fork"
        end

        @open_ios.close_others(HttpServer.open_ios)
      end
    end
  end
end
