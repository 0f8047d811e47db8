# frozen_string_literal: true

require "fileutils"
require "json"
require "open3"
require "rbconfig"
require "support/surroundings"

# The command runs in a process of its own, with a stand-in for the server that tells what it was given.
RSpec.describe "pitchfork-rs", :in_tmpdir do
  let(:root) { File.expand_path("../..", __dir__) }

  before do
    Dir.mkdir("stand_in")
    File.write("stand_in/pitchfork_rs.rb", <<~'RUBY')
      require "json"
      module PitchforkRs
        class HttpServer
          def initialize(app, config) = (@app, @config = app, config)

          def start(sync)
            @report = { sync: sync, arity: @app.arity, env: ENV["RACK_ENV"], listeners: @config.listeners.map(&:first),
                        workers: @config[:worker_processes], probe: defined?($probe) && $probe, debug: $DEBUG,
                        verbose: $VERBOSE, include: $LOAD_PATH.first(2), loaded: defined?(APP_WAS_LOADED) }
            @report[:body] = @app.call.call({}).last if @config[:worker_processes] == 42
            self
          end

          def join
            puts JSON.generate(@report)
            7
          end
        end
      end
    RUBY
    File.write("config.ru", "APP_WAS_LOADED = true\nrun ->(_env) { [200, {}, 'from config.ru'] }\n")
  end

  def pitchfork(*arguments, env: {})
    ruby = [RbConfig.ruby, "-Istand_in", "-I#{root}/lib", "#{root}/exe/pitchfork-rs"]
    out, err, status = Open3.capture3(Surroundings::ENVIRONMENT.merge(env), *ruby, *arguments, chdir: Dir.pwd)
    [out, err, status.exitstatus]
  end

  def report(*arguments, **options)
    out, err, status = pitchfork(*arguments, **options)
    expect([err, status]).to eq(["", 7])
    JSON.parse(out.lines.last, symbolize_names: true)
  end

  def failure(*arguments, **options)
    out, err, status = pitchfork(*arguments, **options)
    expect([out, status, err.lines.size]).to eq(["", 1, 1]), err
    err.chomp
  end

  it "starts the server, waits for it, and exits with its status" do
    expect(report).to include(sync: false, listeners: ["0.0.0.0:8080"])
  end

  it "hands over the application unloaded, as something to call without arguments" do
    expect(report).to include(arity: 0, loaded: nil)
    expect(report("-c", File.write("c.rb", "worker_processes 42") && "c.rb")).to include(body: "from config.ru")
  end

  it "loads the file it is given" do
    File.write("command_spec_app.rb", "CommandSpecApp = ->(_env) { [200, {}, 'from Ruby'] }")
    expect(report("command_spec_app.rb", env: { "WEB_CONCURRENCY" => "42" })).to include(body: "from Ruby")
  end

  describe "the environment's name" do
    it "is development, unless something says otherwise" do
      expect(report[:env]).to eq("development")
      expect(report(env: { "RACK_ENV" => "test" })[:env]).to eq("test")
      expect(report("-E", "staging", env: { "RACK_ENV" => "test" })[:env]).to eq("staging")
      expect(report("--env", "staging")[:env]).to eq("staging")
    end

    it "is there before any code runs" do
      expect(report("-e", "$probe = ENV['RACK_ENV']")[:probe]).to eq("development")
      expect(report("-E", "staging", "-e", "$probe = ENV['RACK_ENV']")[:probe]).to eq("staging")
    end
  end

  describe "addresses" do
    it "are added with -l" do
      expect(report("-l", "8081", "--listen", "127.0.0.1:8082")[:listeners]).to eq(["0.0.0.0:8081", "127.0.0.1:8082"])
    end

    it "are made of -p and -o" do
      expect(report("-p", "8", "-p", "9")[:listeners]).to eq(["0.0.0.0:9"])
      expect(report("--port", "010")[:listeners]).to eq(["0.0.0.0:10"])
      expect(report("-o", "127.0.0.1")[:listeners]).to eq(["127.0.0.1:8080"])
      expect(report("--host", "::1", env: { "PORT" => "3000" })[:listeners]).to eq(["[::1]:3000"])
      expect(report("-p", "9", env: { "PORT" => "3000" })[:listeners]).to eq(["0.0.0.0:9"])
    end

    it "add up with those of the configuration" do
      File.write("c.rb", "listen 81")
      expect(report("-c", "c.rb", "-l", "82", "-p", "83")[:listeners]).to eq(%w[0.0.0.0:82 0.0.0.0:81 0.0.0.0:83])
    end
  end

  it "reads the configuration file it is given, or the default one" do
    Dir.mkdir("config")
    File.write("config/pitchfork.rb", "worker_processes 2")
    File.write("c.rb", "worker_processes 3")
    expect([report, report("-c", "c.rb"), report("--config-file", "c.rb")].map { |it| it[:workers] }).to eq([2, 3, 3])
  end

  describe "Ruby's options" do
    it "evaluate code at the top level, each a line further" do
      code = "$probe = ($probe || []) << [self.to_s, __FILE__, __LINE__]"
      expect(report("-e", code, "--eval", code)[:probe]).to eq([["main", "-e", 1], ["main", "-e", 2]])
    end

    it "add to the load path, and require from there" do
      Dir.mkdir("libs")
      File.write("libs/probe_library.rb", "$probe = :required")
      result = report("-I", "libs:more", "-r", "probe_library")
      expect(result).to include(probe: "required", include: [File.expand_path("libs"), File.expand_path("more")])
    end

    it "turn on warnings and debugging" do
      expect(report).to include(verbose: false, debug: false)
      expect(report("-w")).to include(verbose: true, debug: false)
      out, _err, status = pitchfork("-d")
      expect([JSON.parse(out.lines.last)["debug"], status]).to eq([true, 7])
    end
  end

  describe "the options line of a .ru file" do
    def rackup(line)
      File.write("config.ru", "#\\ #{line}\nrun ->(_env) { [200, {}, []] }\n")
    end

    it "is read" do
      rackup("-p 9999 -w -E staging -l 81")
      expect(report).to include(listeners: %w[0.0.0.0:81 0.0.0.0:9999], verbose: true, env: "staging")
    end

    it "yields to the arguments" do
      rackup("-p 9999 -o 127.0.0.1 -E staging -c other.rb")
      File.write("c.rb", "worker_processes 3")
      expect(report("-p", "9", "-E", "test", "-c", "c.rb"))
        .to include(listeners: ["127.0.0.1:9"], env: "test", workers: 3)
    end

    it "is refused with the file's name" do
      rackup("--nonsense")
      expect(failure).to eq("pitchfork-rs: config.ru:1: options line: invalid option: --nonsense")
      rackup("-w other.ru")
      expect(failure).to eq("pitchfork-rs: config.ru:1: options line: unexpected other.ru")
    end
  end

  describe "--check-config" do
    # Name, value and place of each line.
    def checked(*arguments, **options)
      out, err, status = pitchfork("--check-config", *arguments, **options)
      expect([err, status]).to eq(["", 0])
      @heading, _, *lines = out.lines(chomp: true)
      lines.map { |line| line.match(/\A(\S+) +(.*?) +# (.+)\z/)&.captures || line }
    end

    it "shows each setting there is with its value and its place, and starts nothing" do
      File.write("c.rb", <<~RUBY)
        worker_processes 4
        listen 3000, backlog: 7
        timeout 30, cleanup: 4
        refork_after [5, false]
        before_fork { |server| server }
        logger Logger.new("it.log")
      RUBY
      rows = checked("-c", "c.rb", "-p", "81", "-E", "staging")
      names = described_settings
      expect(rows.map(&:first)).to eq([*["listen"] * 2, *names])
      expect(rows).to include(
        ["listen", a_string_matching(/\A"0\.0\.0\.0:3000", backlog: 7, .*tcp_nodelay: true.* tries: 5/), "c.rb:2"],
        ["listen", a_string_starting_with('"0.0.0.0:81", backlog: 1024'), "command line"],
        ["worker_processes", "4", "c.rb:1"], %w[soft_timeout 30 c.rb:3], %w[cleanup_timeout 4 c.rb:3],
        ["timeout", "34", "follows from others"], ["before_fork", "Proc at c.rb:5", "c.rb:5"],
        ["refork_condition", "#<PitchforkRs::ReforkCondition::RequestsCount [5, false]>", "c.rb:4"],
        ["logger", "Logger to it.log", "c.rb:6"], ["after_worker_ready", "logs a line", "default"],
        %w[spawn_timeout 10 default], %w[pid none default]
      )
      expect(@heading).to eq("The configuration is fine: c.rb, RACK_ENV staging, application config.ru (not loaded)")
    end

    # As another process would see them: the directives are read here, in no process of a server.
    def described_settings
      require "pitchfork_rs/configurator"
      PitchforkRs::Configurator.new(config_file: nil).effective_settings.map { |name, _| name.to_s }
    end

    it "goes by the options line and the environment, too" do
      File.write("config.ru", "#\\ -l 127.0.0.1:82\nraise 'never loaded'\n")
      rows = checked(env: { "WEB_CONCURRENCY" => "3" })
      expect(rows).to include(["listen", a_string_starting_with('"127.0.0.1:82", backlog: 1024'), "options"],
                              %w[worker_processes 3 environment])
      File.write("config.ru", "raise 'never loaded'\n")
      { { "PORT" => "3001" } => %w[3001 environment], {} => %w[8080 default] }.each do |env, (port, place)|
        listener = a_string_starting_with(%("0.0.0.0:#{port}", backlog: 1024))
        expect(checked(env: env)).to include(["listen", listener, place])
      end
      expect(@heading).to include("no file")
    end

    it "creates no file, and does not mind the pid file of the server that runs" do
      File.write("server.pid", Process.pid.to_s)
      File.write("c.rb", "pid 'server.pid'\nstdout_path 'out'\nstderr_path 'err'\nlog_format :json\n")
      before = Dir.children(".")
      expect(checked("-c", "c.rb")).to include(["pid", File.expand_path("server.pid").inspect, "c.rb:1"],
                                               ["logger", "Logger to standard error", "c.rb:4"])
      expect(Dir.children(".")).to match_array(before)
    end

    it "fails in one line as a start would" do
      File.write("c.rb", "\nworker_processes 0")
      expect(failure("--check-config", "-c", "c.rb")).to start_with("pitchfork-rs: c.rb:2: worker_processes: got 0")
      expect(failure("--check-config", "missing.ru")).to eq("pitchfork-rs: missing.ru: no such file")
    end
  end

  describe "working_directory" do
    it "is where paths in the lines that follow it begin" do
      Dir.mkdir("elsewhere")
      File.write("elsewhere/config.ru", "")
      File.write("c.rb", <<~RUBY)
        stdout_path "out.log"
        working_directory "elsewhere"
        stderr_path Pathname("err.log")
        pid "it.pid"
      RUBY
      out, err, status = pitchfork("--check-config", "-r", "pathname", "-c", "c.rb")
      expect([err, status]).to eq(["", 0])
      paths = out.scan(/^(stdout_path|stderr_path|pid|working_directory) +"(.*?)"/).to_h
      expected = { stdout_path: "out.log", stderr_path: "elsewhere/err.log", pid: "elsewhere/it.pid",
                   working_directory: "elsewhere" }
      expect(paths).to eq(expected.to_h { |name, path| [name.to_s, File.expand_path(path)] })
    end

    def prepare
      FileUtils.mkdir_p("elsewhere")
      File.write("elsewhere/config.ru", "run ->(_env) { [200, {}, 'from ' + ENV['PWD']] }")
      File.write("c.rb", "worker_processes 42\nworking_directory 'elsewhere'\nlisten 'unix:rel.sock'")
    end

    it "is where the application is, and Unix sockets are" do
      prepare
      result = report("-c", "c.rb")
      expect(result).to include(listeners: [File.expand_path("elsewhere/rel.sock")],
                                body: "from #{File.expand_path("elsewhere")}")
    end

    it "may be the only place where the application is" do
      prepare
      File.delete("config.ru")
      expect(report("-c", "c.rb")).to include(body: /\Afrom/)
      File.delete("elsewhere/config.ru")
      expect(failure("-c", "c.rb")).to eq("pitchfork-rs: config.ru: no such file")
    end

    it "comes too late for the options line of an application that is only there" do
      prepare
      File.delete("config.ru")
      File.write("elsewhere/config.ru", "#\\ -p 9\nrun 1\n")
      expect(failure("-c", "c.rb")).to match(/\Apitchfork-rs: config\.ru:1: options line: is seen too late.* c\.rb;/)
    end
  end

  it "ignores -s with a warning" do
    _out, err, status = pitchfork("-s", "puma")
    expect([err, status]).to eq(["pitchfork-rs: -s puma is ignored: this command starts no other server\n", 7])
  end

  it "shows its help" do
    out, err, status = pitchfork("-h")
    expect([err, status]).to eq(["", 0])
    expect(out).to start_with("Usage: pitchfork-rs [options] [config.ru]\n")
    expect(out.scan(/^  (-\w), --/).flatten).to eq(%w[-e -r -I -d -w -l -p -o -c -E -s -D -h -v])
    expect(out).to match(/^ +--check-config /)
  end

  it "shows its version" do
    load File.join(root, "lib/pitchfork_rs/version.rb") unless defined?(PitchforkRs::VERSION)
    expect(pitchfork("--version")).to eq(["pitchfork-rs v#{PitchforkRs::VERSION}\n", "", 0])
  end

  describe "what it refuses, in one line and with status 1" do
    it "is an option it does not know, or a value that one cannot have" do
      expect(failure("--nonsense")).to eq("pitchfork-rs: invalid option: --nonsense")
      expect(failure("-p", "http")).to eq("pitchfork-rs: invalid argument: -p http, wanted a port from 0 to 65535")
      expect(failure("-p")).to eq("pitchfork-rs: missing argument: -p")
    end

    it "is -D, which it says who does" do
      expect(failure("-D")).to match(/\Apitchfork-rs: -D is not supported: let systemd/)
      expect(failure("--daemonize")).to match(/systemd/)
    end

    it "is a library that is not there" do
      expect(failure("-r", "no/such/library")).to eq("pitchfork-rs: -r no/such/library: no such library")
    end

    it "is an application file that is not there, or several" do
      expect(failure("missing.ru")).to eq("pitchfork-rs: missing.ru: no such file")
      expect(failure("a.ru", "b.ru")).to eq("pitchfork-rs: wanted one application file, got a.ru b.ru")
    end

    it "is a mistake in the configuration" do
      File.write("c.rb", "\nworker_processes :many\n")
      expect(failure("-c", "c.rb"))
        .to eq("pitchfork-rs: c.rb:2: worker_processes: got :many (Symbol), wanted an Integer of at least 1")
      expect(failure("-c", "missing.rb"))
        .to eq("pitchfork-rs: missing.rb: configuration file cannot be read (No such file or directory)")
      expect(failure("-l", "nonsense")).to start_with('pitchfork-rs: options: listen: got "nonsense" (String), wanted')
    end
  end

  it "lets an error inside a library show its backtrace" do
    File.write("broken_library.rb", "require 'no/such/dependency'")
    _out, err, status = pitchfork("-r", "./broken_library")
    expect([status, err]).to match([1, %r{no/such/dependency \(LoadError\).*broken_library\.rb:1}m])
  end
end
