# frozen_string_literal: true

module PitchforkRs
  class HttpServer
    # The listening sockets that a supervisor has passed on: systemd by `LISTEN_FDS` and `LISTEN_PID`, others by the
    # numbers in `UNICORN_FD`.
    # @api private
    class InheritedSockets
      # The first number that systemd uses; those below are the standard streams.
      FIRST = 3
      VARIABLES = %w[LISTEN_FDS LISTEN_PID LISTEN_FDNAMES UNICORN_FD].freeze
      private_constant :FIRST, :VARIABLES

      # Takes the sockets, and the variables out of the environment: no other process shall find them there.
      #
      # @param environment [ENV, Hash]
      # @return [InheritedSockets]
      # @raise [BootFailure] if a variable is malformed, or names something that no connection can be accepted from
      def self.take(environment = ENV)
        said = VARIABLES.to_h { |name| [name, environment.delete(name)] }
        new(systemd_numbers(said).to_h { |number| [number, "LISTEN_FDS"] }.merge(
              unicorn_numbers(said).to_h { |number| [number, "UNICORN_FD"] }
            ))
      end

      def self.systemd_numbers(said)
        # Without a pid, or with another's, they are not meant for this process.
        return [] unless said["LISTEN_PID"] && number("LISTEN_PID", said, 1) == Process.pid

        count = number("LISTEN_FDS", said, 0)
        (FIRST...(FIRST + count)).to_a
      end
      private_class_method :systemd_numbers

      def self.unicorn_numbers(said)
        said["UNICORN_FD"].to_s.split(",").map { |text| number("UNICORN_FD", said, FIRST, text) }
      end
      private_class_method :unicorn_numbers

      def self.number(name, said, least, text = said[name])
        value = Integer(text.to_s.strip, 10, exception: false)
        return value if value&.between?(least, 0x7fff_ffff)

        wanted = name == "UNICORN_FD" ? "numbers of descriptors of at least #{least}, with commas between" : "a number"
        raise BootFailure, "environment: #{name}: got #{said[name].to_s[0, 80].inspect}, wanted #{wanted}"
      end
      private_class_method :number

      # @param sources [Hash{Integer => String}] the variable that named each descriptor
      def initialize(sources)
        @sockets = sources.map { |number, source| take_over(number, source) }
      end

      # @return [Boolean]
      def empty? = @sockets.empty?

      # Takes those that stand for an address. One bound to all of IPv6 that lets IPv4 in stands for all of IPv4 too:
      # systemd makes such a one of a bare port.
      #
      # @param address [String] as in {Configurator#listeners}
      # @return [Array<Socket>] all of one address, in the order in which they were passed
      def take(address)
        found = @sockets.find { |socket| name_of(socket) == address } ||
                @sockets.find { |socket| stands_for(socket) == address }
        found ? take_all_like(found) : []
      end

      # @return [Array<(String, Array<Socket>)>] what is left, by address
      def take_rest
        rest = []
        rest << [name_of(@sockets.first), take_all_like(@sockets.first)] until @sockets.empty?
        rest
      end

      private

      def take_over(number, source)
        socket = begin
          Socket.for_fd(number)
        rescue SystemCallError, ArgumentError # the latter from some Rubies, for a descriptor that is no socket
          complain(number, source, "is no open socket")
        end
        complaint = complaint_about(socket)
        complain(number, source, complaint) if complaint
        socket.close_on_exec = true
        socket
      end

      def complain(number, source, complaint)
        raise BootFailure, "environment: #{source}: descriptor #{number} #{complaint}, wanted a listening stream socket"
      end

      def complaint_about(socket)
        address = socket.local_address
        return "is neither TCP nor a Unix socket" unless address.ip? || address.unix?
        return "is no stream socket" unless socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_STREAM
        return "is not bound" if address.ip? ? address.ip_port.zero? : address.unix_path.empty?

        "is a connection" if connected?(socket)
      end

      def connected?(socket)
        socket.getpeername
        true
      rescue Errno::ENOTCONN
        false
      end

      def take_all_like(found)
        same, @sockets = @sockets.partition { |socket| name_of(socket) == name_of(found) }
        same
      end

      def name_of(socket)
        address = socket.local_address
        return address.unix_path.sub(/\A\0/, "@") if address.unix?

        address.ipv6? ? "[#{address.ip_address}]:#{address.ip_port}" : "#{address.ip_address}:#{address.ip_port}"
      end

      def stands_for(socket)
        address = socket.local_address
        return unless address.ipv6? && address.ip_address == "::"

        "0.0.0.0:#{address.ip_port}" if socket.getsockopt(:IPV6, :V6ONLY).int.zero?
      end
    end
    private_constant :InheritedSockets
  end
end
