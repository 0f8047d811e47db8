# frozen_string_literal: true

require "json"
require "open3"
require "support/server"

# The real rackup where there is one, and callers that do as rackup and Rails do.
RSpec.describe "the Rack handler", :server do
  let(:library) { File.expand_path("../../lib", __dir__) }

  # A server that another program starts, with a configuration where it is looked for.
  def foreign(*command, config: nil, **options)
    directory = "server-#{Array(@servers).size}/config"
    FileUtils.mkdir_p(directory)
    File.write("#{directory}/pitchfork.rb", config) if config
    start(command: command, **options)
  end

  # Asked of a program without Bundler, as the server will be: rackup is not in the bundle.
  def rackup_path
    gem = Gem::Version.new(Rack.release) < Gem::Version.new("3") ? "rack" : "rackup"
    path, status = Open3.capture2(Surroundings::ENVIRONMENT, RbConfig.ruby, "-e", "print Gem.bin_path(*ARGV)",
                                  gem, "rackup", err: File::NULL)
    status.success? ? path : skip("there is no rackup for this Rack")
  end

  def rackup(*arguments, **options)
    require "rack"
    foreign(rackup_path, "-s", "pitchfork-rs", *arguments, **options)
  end

  # What a caller hands over as `options`, in a program of its own.
  def handled(options, **more)
    foreign("-e", <<~RUBY, **more)
      require "pitchfork_rs/rack_handler"
      extend PitchforkRs::RackHandler
      run(->(_env) { [200, {}, ["hello"]] }, **#{options}) { |server| warn "given \#{server.class}" }
      warn "gone on"
    RUBY
  end

  def ruby(code, *options)
    out, status = Open3.capture2e(Surroundings::ENVIRONMENT, RbConfig.ruby, "-I#{library}", *options, "-e", code)
    expect(status).to be_success, out
    out.lines(chomp: true)
  end

  def free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

  def ports(server) = server.addresses.map { |address| address[/\d+\z/].to_i }.uniq

  describe "for rackup" do
    it "serves in development without complaints, and ends at INT" do
      server = rackup("-p", "0", ready: false)
      server.wait_for_log(/monitor process ready/) # on as many addresses as localhost has here, with a port each
      expect(server.exchange(ServerExamples::GET).body).to eq("hello")
      expect(server.addresses.first).to match(/\A(127\.0\.0\.1|\[::1\]):\d+\z/)
      # rackup's own line, which comes after the response.
      server.wait_for_log(%r{"GET / HTTP/1.1" 200})
      expect(server.stop(:INT).exitstatus).to eq(0)
      expect(server.log).to include("monitor complete status=0")
      expect(server.log).not_to match(/error|warn|fatal|exception/i)
    end

    it "reads config/pitchfork.rb, and options of the server's as -O" do
      server = rackup("-p", "0", "-O", "log_format=json", "-O", "refork_after=7,false", "-O", "early_hints=true",
                      ready: false, config: <<~RUBY)
                        worker_processes 2
                        after_monitor_ready { |server| File.write("seen", server.config[:refork_condition].inspect) }
                      RUBY
      server.wait_for_workers(2)
      wait_until("the hook") { server.read("seen") != "" }
      expect(server.read("seen")).to include("[7, false]")
      expect(JSON.parse(server.log.lines.first)).to include("level" => "INFO")
    end

    it "says in one line what is wrong, with status 1" do
      { %w[-O worker_processes=none] =>
          'options: worker_processes: got "none" (String), wanted an Integer of at least 1',
        %w[-O worker_procesess=3] => 'options: unknown directive "worker_procesess"; did you mean worker_processes?',
        %w[-O preload_app] => "options: preload_app: remove it: the application is always loaded before the workers " \
                              "are forked",
        %w[-p http] => 'options: Port: got "http", wanted an Integer from 0 to 65535',
        %w[-p 70000] => 'options: Port: got "70000", wanted an Integer from 0 to 65535' }.each do |arguments, line|
        server = rackup("-o", "127.0.0.1", *arguments, ready: false)
        expect(server.wait_for_end.exitstatus).to eq(1)
        expect(server.log).to start_with("pitchfork-rs: #{line}").and have_attributes(lines: have_attributes(size: 1))
      end
    end

    it "shows the options there are" do
      require "rack"
      command = [RbConfig.ruby, "-I#{library}", rackup_path, "-s", "pitchfork-rs", "-h"]
      out, = Open3.capture2e(Surroundings::ENVIRONMENT, *command)
      expect(out).to match(/-O config_file=FILE/).and match(/-O worker_processes=VALUE +an Integer of at least 1/)
      expect(out).not_to match(/-O (before_fork|logger|pid)=/)
    end
  end

  describe "listens" do
    let(:file_port) { free_port }
    let(:config) { "listen '127.0.0.1:#{file_port}'" }

    it "where Rails was told to, whatever the file says" do
      port = free_port
      options = "{ Host: '127.0.0.1', Port: #{port}, user_supplied_options: [:Port], early_hints: nil, pid: 'x' }"
      server = handled(options, config: config)
      expect([ports(server), server.get.body]).to eq([[port], "hello"])
    end

    it "where the file says, if Rails was told nothing" do
      server = handled("{ Host: 'localhost', Port: 3000, user_supplied_options: [] }", config: config)
      expect(ports(server)).to eq([file_port])
    end

    it "where rackup was told to, which hands over a String then" do
      port = free_port
      expect(ports(handled("{ Host: '127.0.0.1', Port: '#{port}' }", config: config))).to eq([port])
      expect(ports(handled("{ Host: 'localhost', Port: 9292 }", config: config))).to eq([file_port])
    end

    it "at the starter's default where nobody says anything, and at PORT before that" do
      port = free_port
      server = handled("{ Host: 'localhost', Port: #{port} }", ready: false)
      server.wait_for_log(/monitor process ready/) # on as many addresses as the name has here
      expect([ports(server), server.get.body]).to eq([[port], "hello"])
      other = free_port
      server = foreign("-e", <<~RUBY)
        ENV["PORT"] = "#{other}"
        require "pitchfork_rs/rack_handler"
        extend PitchforkRs::RackHandler
        run(->(_env) { [200, {}, []] }, { Host: "127.0.0.1", Port: #{port}, user_supplied_options: [] })
      RUBY
      expect(ports(server)).to eq([other])
    end

    it "nowhere, in one line, on a machine that does not know its own name" do
      server = foreign("-e", <<~RUBY, ready: false)
        require "pitchfork_rs/rack_handler"
        nameless = Module.new { %i[getaddrinfo tcp].each { |name| define_method(name) { |*| raise SocketError, "unknown" } } }
        Addrinfo.singleton_class.prepend(nameless)
        extend PitchforkRs::RackHandler
        run(->(_env) { [200, {}, []] }, { Host: "localhost", Port: 1, user_supplied_options: [:Port] })
      RUBY
      server.wait_for_end
      expect(server.log).to match(/\A.*host "localhost" does not resolve \(unknown\)\n\z/)
    end

    it "at rackup's own default port too, if it was told so" do
      code = <<~RUBY
        require "pitchfork_rs/rack_handler"
        Dir.mkdir("config")
        File.write("config/pitchfork.rb", "listen '127.0.0.1:9'")
        [9292, "9292"].each do |port|
          options = { Host: "0.0.0.0", Port: port, AccessLog: [], config: "config.ru", environment: "development" }
          p PitchforkRs::RackHandler::Options.new(options).configure.listeners.map(&:first)
        end
      RUBY
      expect(ruby(code)).to eq(['["127.0.0.1:9"]', '["0.0.0.0:9292"]'])
    end

    it "with the options of the file, where that has the same address" do
      server = handled("{ Host: '127.0.0.1', Port: '#{file_port}' }",
                       config: "listen '127.0.0.1:#{file_port}', backlog: 7\n" \
                               "after_monitor_ready { |server| File.write('seen', server.config.listeners.inspect) }")
      wait_until("the hook") { server.read("seen") != "" }
      expect(server.read("seen")).to match(/\A\[\["127\.0\.0\.1:#{file_port}", \{:?backlog(?:=>|: )7[,}]/)
    end
  end

  it "has what goes to standard output written at once" do
    server = handled({ Host: "127.0.0.1", Port: "0" }.inspect, config: "logger Logger.new($stdout)", ready: false)
    server.wait_for_log(/worker=0 gen=0 pid=\d+ ready/)
    expect(server.log).to include("monitor process ready")
  end

  it "gives the server to the caller's block, and returns when the server has stopped" do
    server = handled("{ Host: '127.0.0.1', Port: 0 }")
    server.stop
    expect(server.log.lines(chomp: true)).to start_with("given PitchforkRs::HttpServer").and end_with("gone on")
  end

  it "ends the program with status 1 when an address is taken" do
    TCPServer.open("127.0.0.1", 0) do |taken|
      server = handled("{ Host: '127.0.0.1', Port: #{taken.addr[1]} }", ready: false)
      expect(server.wait_for_end.exitstatus).to eq(1)
      expect(server.log.lines.last).to match(/\Apitchfork-rs: [^\n]*in use[^\n]*\n\z/)
    end
  end

  describe "is found" do
    it "by Rack 2" do
      require "rack"
      skip "this Rack has no handlers" if Gem::Version.new(Rack.release) >= Gem::Version.new("3")
      names = %w[pitchfork-rs pitchfork_rs PitchforkRs]
      lines = ruby("require 'rack'; #{names}.each { |name| p Rack::Handler.get(name) }")
      expect(lines).to eq(["Rack::Handler::PitchforkRs"] * 3)
    end

    it "by the gem rackup" do
      FileUtils.mkdir_p("fake/rackup")
      File.write("fake/rackup/handler.rb", <<~'RUBY')
        module Rackup
          module Handler
            TABLE = {}
            def self.register(name, handler) = handler.is_a?(Module) ? TABLE[name.to_sym] = handler : raise(TypeError)
            def self.get(name)
              TABLE[name] || (require("rackup/handler/#{name}") && TABLE[name])
            end
          end
        end
      RUBY
      lines = ruby(<<~RUBY, "-Ifake")
        require "rackup/handler"
        handler = Rackup::Handler.get(:"pitchfork-rs")
        p handler, Rackup::Handler.get(:pitchfork_rs), handler.respond_to?(:run), handler.valid_options.key?("Port=PORT")
      RUBY
      expect(lines).to eq(%w[Rackup::Handler::PitchforkRs Rackup::Handler::PitchforkRs true true])
    end
  end
end
