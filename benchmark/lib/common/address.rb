# frozen_string_literal: true

require "socket"

module Bench
  # Where a server listens: a port of 127.0.0.1, or the path of a Unix socket.
  Address = Struct.new(:directive) do
    # Below the ports that the kernel gives to clients. Within them, a client that asks after the server's end may be
    # given this very port, and would connect to itself.
    def self.free
      lowest = Integer(File.read("/proc/sys/net/ipv4/ip_local_port_range").split.first)
      100.times do
        port = rand(10_000...lowest)
        TCPServer.open("127.0.0.1", port).close
        return new("127.0.0.1:#{port}")
      rescue Errno::EADDRINUSE
        next
      end
      raise "no free port"
    end

    def family = unix? ? Socket::AF_UNIX : Socket::AF_INET
    def unix? = directive.start_with?("/")
    def sockaddr = unix? ? Socket.sockaddr_un(directive) : Socket.sockaddr_in(port, "127.0.0.1")
    def port = Integer(directive[/\d+\z/])
    def to_s = directive
  end
end
