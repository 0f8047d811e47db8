# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"

# The command runs in a process of its own, with a stand-in for the server that tells what it was given.
RSpec.describe "pitchfork-rs", :in_tmpdir do
  let(:root) { File.expand_path("../..", __dir__) }
  let(:environment) { { "RACK_ENV" => nil, "PORT" => nil, "WEB_CONCURRENCY" => nil, "RUBYOPT" => nil } }

  before do
    Dir.mkdir("stand_in")
    File.write("stand_in/pitchfork_rs.rb", <<~'RUBY')
      require "json"
      module PitchforkRs
        class HttpServer
          def initialize(app, options) = (@app, @options = app, options)

          def start(sync)
            @report = { sync: sync, arity: @app.arity, options: @options.dup, env: ENV["RACK_ENV"] }
            config = Configurator.new(@options)
            @report.update(listeners: config.listeners.map(&:first), workers: config[:worker_processes], probe: defined?($probe) && $probe,
                           debug: $DEBUG, verbose: $VERBOSE, include: $LOAD_PATH.first(2), loaded: defined?(APP_WAS_LOADED))
            @report[:body] = @app.call.call({}).last if config[:worker_processes] == 42
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
    out, err, status = Open3.capture3(environment.merge(env), *ruby, *arguments, chdir: Dir.pwd)
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
    expect(report).to include(sync: false, options: { listeners: [] }, listeners: ["0.0.0.0:8080"])
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
      expect(failure).to eq("pitchfork-rs: config.ru: options line: invalid option: --nonsense")
      rackup("-w other.ru")
      expect(failure).to eq("pitchfork-rs: config.ru: options line: unexpected other.ru")
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
  end

  it "shows its version" do
    load File.join(root, "lib/pitchfork_rs/version.rb") unless defined?(PitchforkRs::VERSION)
    expect(pitchfork("--version")).to eq(["pitchfork-rs v#{PitchforkRs::VERSION}\n", "", 0])
  end

  describe "what it refuses, in one line and with status 1" do
    it "is an option it does not know, or a value that one cannot have" do
      expect(failure("--nonsense")).to eq("pitchfork-rs: invalid option: --nonsense")
      expect(failure("-p", "http")).to eq("pitchfork-rs: invalid argument: -p http")
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
