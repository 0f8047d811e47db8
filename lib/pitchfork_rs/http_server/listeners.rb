# frozen_string_literal: true

module PitchforkRs
  class HttpServer
    # The listening sockets of this process as Ruby IOs, for those who look into their queues. Each has a descriptor
    # besides the server's own, which thus nobody closes by mistake; accepting is the server's business.
    class Listeners
      include Enumerable

      def initialize
        @sockets = []
      end

      # @yieldparam socket [TCPServer, UNIXServer]
      # @return [self, Enumerator]
      def each(&block)
        return enum_for(:each) { size } unless block

        @sockets.map(&:last).each(&block)
        self
      end

      # @return [Integer] how many there are; each queue of an address counts
      def size = @sockets.size

      # @return [Boolean]
      def empty? = @sockets.empty?

      # @return [Array<String>] the addresses, each once: `1.2.3.4:80`, `[::1]:80` or the path of a Unix socket
      def names = @sockets.map(&:first).uniq

      # @param name [String] an address
      # @param descriptor [Integer] an open descriptor of such a socket, which is the IO's from now on
      # @return [TCPServer, UNIXServer]
      # @api private
      def add(name, descriptor)
        socket = (name.match?(%r{\A[/@]}) ? UNIXServer : TCPServer).for_fd(descriptor)
        # As Pitchfork has it: whoever closes it by mistake closes nothing. `remove` does.
        socket.autoclose = false
        @sockets << [name, socket]
        socket
      end

      # Closes sockets, so that nobody who still has them uses a descriptor that is another's by then.
      #
      # @param sockets [Array<IO>] by default all
      # @return [self]
      # @api private
      def remove(sockets = to_a)
        sockets.each do |socket|
          next if socket.closed?

          # Without this `close` leaves the descriptor open.
          socket.autoclose = true
          socket.close
        end
        @sockets.reject! { |_, socket| sockets.include?(socket) }
        self
      end

      # @return [String]
      def inspect = "#<#{self.class} #{names.join(" ")}>"
    end
    private_constant :Listeners

    # The listening sockets of this process: in the monitor from {HttpServer#start} to the end of {HttpServer#join}, and
    # in all children.
    LISTENERS = Listeners.new
  end
end
