# frozen_string_literal: true

# Applications that make their worker want a reactor.
module ReactorExamples
  # Says `ReactorWanted` on the worker's channel when "/want" is asked for. Of all sockets of that type the channel is
  # the one that the monitor does not have too.
  WANTING = <<~'RUBY'
    require "socket"
    channel = lambda do
      links = ->(pid) { Dir["/proc/#{pid}/fd/*"].to_h { |path| [path, (File.readlink(path) rescue nil)] } }
      own = links["self"].reject { |path, link| links[Process.ppid].value?(link) || !link.to_s.start_with?("socket:") }
      sockets = own.keys.map { |path| BasicSocket.for_fd(File.basename(path).to_i) }
      sockets.each { |socket| socket.autoclose = false }
      sockets.find { |socket| socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_SEQPACKET }
    end
    run lambda { |env|
      channel.call.send("\x16", 0) if env["PATH_INFO"] == "/want"
      Pitchfork::Info.no_longer_fork_safe! if env["PATH_INFO"] == "/unsafe"
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  # A library whose callback keeps everybody from forking as long as a file is there.
  FORKING_UNLESS_BROKEN = <<~CONFIG
    Process.singleton_class.prepend(Module.new do
      define_method(:_fork) { raise 'no room' if File.exist?('broken'); super() }
    end)
  CONFIG

  # A server with a reactor that is ready.
  def start_with_reactor(rackup = WANTING, **options)
    server = start(rackup, **options)
    server.get("/want")
    wait_for_reactor(server)
    server
  end

  # Waits until so many reactors in all have become ready; gives the pid of the last one.
  def wait_for_reactor(server, count: 1)
    server.wait_for_log(/reactor pid=\d+ ready/, count: count)
    server.log.scan(/reactor pid=(\d+) ready/).last.first.to_i
  end
end
