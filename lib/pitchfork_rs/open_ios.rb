# frozen_string_literal: true

require "set"
require "socket"

module PitchforkRs
  # The open IOs of this process, and which of them shall stay open when the others are closed.
  # @api private
  class OpenIOs
    def initialize
      # By identity and weak: to be kept open is no reason to live on.
      @kept = ObjectSpace::WeakMap.new
    end

    # @param io [#to_io]
    # @return [#to_io] the same
    # @raise [ArgumentError] if it is no IO and stands for none
    def keep(io)
      raise ArgumentError, "got #{io.inspect}, wanted an IO or what responds to to_io" unless io.respond_to?(:to_io)

      @kept[io] = true
      io
    end

    # Closes all but those that are kept, the standard streams, those in `spared`, and those that do not own their
    # descriptor.
    #
    # @param spared [Array<IO>]
    # @return [void]
    def close_others(spared = [])
      # rubocop:disable Style/GlobalStdStream -- the two may differ
      spared = [*spared, *kept, $stdin, $stdout, $stderr, STDIN, STDOUT, STDERR].grep(IO).to_set.compare_by_identity
      # rubocop:enable Style/GlobalStdStream
      ObjectSpace.each_object(IO).to_a.each do |io|
        close(io) if owns_descriptor?(io) && !spared.include?(io)
      end
    end

    private

    def kept
      @kept.keys.map(&:to_io)
    end

    # An IO that was never opened raises when it is asked.
    def owns_descriptor?(io)
      !io.closed? && io.autoclose?
    rescue IOError
      false
    end

    # The connection of a socket is shared with the process that opened it, and closing an IO is more than closing a
    # descriptor: what is left in its buffer is sent, and derived classes may say goodbye, which the peer takes for the
    # end. So `/dev/null` takes the connection's place first, by way of another IO with a buffer of its own, and it is
    # IO's own `close` that follows. The kernel tells the peer nothing as long as another process has the connection
    # open.
    def close(io)
      if io.is_a?(BasicSocket)
        File.open(File::NULL, "r+") { |null| IO.for_fd(io.fileno, "r+", autoclose: false).reopen(null) }
      end
      IO.instance_method(:close).bind_call(io)
    rescue SystemCallError, IOError
      nil # somebody has closed it meanwhile, or its descriptor
    end
  end
end
