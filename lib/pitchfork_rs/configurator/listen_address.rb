# frozen_string_literal: true

require "socket"

module PitchforkRs
  class Configurator
    # Brings the many ways to write a listener's address into one.
    # @api private
    module ListenAddress
      # An address that cannot be listened on; the message completes "got …, ".
      class Invalid < ArgumentError; end

      ANY_HOST = "0.0.0.0"
      # `sun_path` holds 108 bytes, with the NUL at its end.
      LONGEST_PATH = 107
      FORMS = 'a port, "host:port", "*:port", "[IPv6]:port", "/path.sock", "~/path.sock" or "unix:path.sock"'
      private_constant :LONGEST_PATH, :FORMS

      module_function

      # Host names are resolved, once, to the first address the system gives for them.
      #
      # @param address [Integer, String]
      # @return [String] `1.2.3.4:80`, `[::1]:80` or an absolute path
      # @raise [Invalid] if it has another form, its port or path is out of range, or its host does not resolve
      def canonical(address)
        case address
        when Integer then tcp(ANY_HOST, address)
        when %r{\A[/~]} then unix(address)
        when /\Aunix:(.+)\z/m then unix($1)
        when /\A(?:\*?:)?(\d+)\z/ then tcp(ANY_HOST, Integer($1, 10))
        when /\A\[([\h:.]+)\]:(\d+)\z/, /\A([^:\[\]\s]+):(\d+)\z/ then tcp($1, Integer($2, 10))
        else raise Invalid, "wanted #{FORMS}"
        end
      rescue ::ArgumentError => e
        # An unknown user after "~", a NUL byte or a string that is not valid in its encoding.
        raise e.is_a?(Invalid) ? e : Invalid.new("which is no valid address (#{e.message})")
      end

      def unix(path)
        # Two leading slashes survive the expansion, because POSIX leaves their meaning open; here they have none.
        absolute = File.expand_path(path).sub(%r{\A/+}, "/")
        return absolute if absolute.bytesize <= LONGEST_PATH

        raise Invalid, "wanted a socket path of at most #{LONGEST_PATH} bytes, " \
                       "this one takes #{absolute.bytesize} when expanded"
      end
      private_class_method :unix

      def tcp(host, port)
        raise Invalid, "wanted a port from 0 to 65535" unless port.between?(0, 65_535)

        info = Addrinfo.tcp(host, port)
        "#{info.ipv6? ? "[#{info.ip_address}]" : info.ip_address}:#{port}"
      rescue SocketError => e
        raise Invalid, "host #{host.inspect} does not resolve (#{e.message})"
      end
      private_class_method :tcp
    end
  end
end
