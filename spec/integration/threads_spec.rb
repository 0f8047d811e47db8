# frozen_string_literal: true

require "support/server"

# An application's other threads may use what belongs to a request while its own one returns. It is called before the
# body is there only if that passes through.
RSpec.describe "a thread of the application", :server do
  def expect_same_worker(pid)
    expect(@server.raw(ServerExamples::GET)).to end_with("\r\n\r\nfine #{pid}")
    expect(@server.log).not_to match(/timed out|ERROR/)
  end

  def start_with(code, **options)
    @server = start(<<~RUBY, **options)
      run lambda { |env|
        next [200, {}, ["fine \#{Process.pid}"]] unless env["PATH_INFO"] == "/threads"

        #{code}
      }
    RUBY
    @server.worker.pid
  end

  def ask
    socket = @server.connect
    socket.write("POST /threads HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
    yield socket
  ensure
    socket&.close
  end

  it "that still reads the body is told that the request is over, and holds nobody up" do
    pid = start_with("Thread.new { Thread.current.report_on_exception = false; env['rack.input'].read }
                      Thread.pass; [200, {}, ['early']]", config: "timeout 3\nrewindable_input false")
    ask { |socket| expect(socket.read).to end_with("early") }
    expect_same_worker(pid)
  end

  it "that still reads the body does not hold up the rest of a response that is taken slowly" do
    pid = start_with("Thread.new { Thread.current.report_on_exception = false; env['rack.input'].read }
                      Thread.pass; [200, {}, ['x' * 900_000]]",
                     config: "listen '127.0.0.1:0', sndbuf: 20_000\ntimeout 3\nrewindable_input false", listen: [])
    ask do |socket|
      expect_same_worker(pid)
      expect(socket.read).to end_with("xxx")
    end
  end

  it "that waits for a client does not stop the clock of the request" do
    start_with("Thread.new { Thread.current.report_on_exception = false; env['rack.input'].read }; sleep",
               config: "timeout 3\nclient_body_timeout 60\nrewindable_input false")
    ask do |socket|
      @server.wait_for_log(/worker=0 gen=0 pid=\d+ timed out, exiting/)
      expect(socket.read).to eq("")
    end
  end
end
