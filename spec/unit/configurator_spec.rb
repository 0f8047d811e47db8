# frozen_string_literal: true

require "logger"
require "pathname"
require "support/configuration"

RSpec.describe PitchforkRs::Configurator, :in_tmpdir do
  include_context "with configurations"

  describe "without a file" do
    it "has defaults" do
      expect(described_class.new.native_settings).to eq(
        worker_processes: 1, soft_timeout: 20, cleanup_timeout: 2, spawn_timeout: 10, refork_max_unavailable: 1,
        mold_prepare: true, setpgid: true, service: false, max_consecutive_spawn_errors: nil,
        client_body_buffer_size: 114_688, client_header_timeout: 10, client_body_timeout: 30,
        client_min_rate: 500, keepalive_timeout: 65, keepalive_requests: 1000, response_buffer_size: 1_048_576,
        client_max_header_size: 114_688, client_max_body_size: nil, write_timeout: 30,
        rewindable_input: true, early_hints: false, check_client_connection: false
      )
      expect(described_class.new.listeners.map(&:first)).to eq(["0.0.0.0:8080"])
    end

    it "has the defaults in DEFAULTS" do
      config = described_class.new
      expect(described_class::DEFAULTS).to include(worker_processes: 1, soft_timeout: 20, timeout: 22,
                                                   refork_condition: nil)
      expect(%i[logger before_fork after_worker_exit timeout].map { |name| config[name] })
        .to eq(%i[logger before_fork after_worker_exit timeout].map { |name| described_class::DEFAULTS[name] })
    end

    it "logs to standard error under the name operators look for" do
      logger = described_class::DEFAULTS[:logger]
      expect([logger.class, logger.progname, logger.formatter.class]).to eq([Logger, "[Pitchfork]", Logger::Formatter])
    end

    it "answers nil for a setting that is none" do
      expect(described_class.new[:nothing_of_the_kind]).to be_nil
    end
  end

  describe "options" do
    it "are directives by name" do
      hook = ->(server) {}
      config = described_class.new(worker_processes: 3, timeout: 9, before_fork: hook, listen: 81)
      expect([config[:worker_processes], config[:soft_timeout], config[:before_fork], config.listeners.map(&:first)])
        .to eq([3, 9, hook, ["0.0.0.0:81"]])
    end

    it "give way to the file, which adds to their listeners" do
      config = configure("worker_processes 5; listen 82", worker_processes: 3, spawn_timeout: 4, listeners: [81])
      expect([config[:worker_processes], config[:spawn_timeout], config.listeners.map(&:first)])
        .to eq([5, 4, ["0.0.0.0:81", "0.0.0.0:82"]])
    end

    it "are left as they were given" do
      options = { listeners: [81], config_file: nil, worker_processes: 2 }.freeze
      described_class.new(options)
      expect(options).to eq(listeners: [81], config_file: nil, worker_processes: 2)
    end

    it "are refused under their origin" do
      expect { described_class.new(worker_processes: 0) }
        .to raise_error(error_class, "options: worker_processes: got 0 (Integer), wanted an Integer of at least 1")
      expect { described_class.new(worker_process: 1) }
        .to raise_error(error_class, 'options: unknown directive "worker_process"; did you mean worker_processes?')
      expect do
        described_class.new(instance_eval: "exit")
      end.to raise_error(error_class, /unknown directive "instance_eval"/)
      expect do
        described_class.new(listeners: ["x"])
      end.to raise_error(error_class, /\Aoptions: listen: got "x" \(String\), wanted/)
    end
  end

  describe "the configuration file" do
    it "is config/pitchfork.rb if that exists" do
      expect(described_class.new.config_file).to be_nil
      Dir.mkdir("config")
      File.write("config/pitchfork.rb", "worker_processes 7")
      config = described_class.new
      expect([config.config_file, config[:worker_processes]]).to eq(["config/pitchfork.rb", 7])
      expect(described_class.new(config_file: nil)[:worker_processes]).to eq(1)
    end

    it "may be a Pathname" do
      File.write("it.rb", "worker_processes 2")
      expect(described_class.new(config_file: Pathname("it.rb"))[:worker_processes]).to eq(2)
    end

    it "is evaluated once, with the Configurator as self and its own name and lines" do
      config = configure(<<~RUBY)
        # frozen_string_literal: true
        (@seen ||= []) << [self, __FILE__, __LINE__, "a".frozen?]
      RUBY
      expect(config.instance_variable_get(:@seen)).to eq([[config, "pitchfork.conf.rb", 2, true]])
    end

    it "resolves the names that files use, then those of the top level" do
      stub_const("OfTheTopLevel", :top_level)
      config = configure("@seen = [Configurator, RACKUP, DEFAULTS, ReforkCondition, OfTheTopLevel, Logger]")
      expect(config.instance_variable_get(:@seen)).to eq(
        [described_class, described_class::RACKUP, described_class::DEFAULTS, PitchforkRs::ReforkCondition, :top_level,
         Logger]
      )
    end

    it "leaves all other constants to the application, in hooks and classes as well" do
      %w[Environment Log Command Stream].each { |name| stub_const(name, name) }
      config = configure(<<~RUBY)
        class Mine
          def seen = [Log, RACKUP, ReforkCondition]
        end
        before_fork { |seen| seen.push(Environment, Command, Stream, *Mine.new.seen) }
      RUBY
      config[:before_fork].call(seen = [])
      expect(seen).to eq(["Environment", "Command", "Stream", "Log", described_class::RACKUP,
                          PitchforkRs::ReforkCondition])
    end

    it "has its local variables to itself" do
      config = configure("def source = 2\n@seen = local_variables\nworker_processes source")
      expect([config[:worker_processes], config.instance_variable_get(:@seen) - [:configurator]]).to eq([2, []])
    end

    it "resolves those constants in the methods and blocks it defines" do
      config = configure(<<~RUBY)
        def app_name = Configurator.name
        before_fork { |server| server << app_name << RACKUP[:host] }
      RUBY
      config[:before_fork].call(seen = [])
      expect(seen).to eq(["PitchforkRs::Configurator", "0.0.0.0"])
    end

    it "may change the defaults" do
      logger = described_class::DEFAULTS[:logger]
      config = configure('Configurator::DEFAULTS[:logger].progname = "[X]"')
      expect(config[:logger].progname).to eq("[X]")
    ensure
      logger.progname = "[Pitchfork]"
    end

    it "ends at __END__" do
      expect(configure("worker_processes 2\n__END__\nworker_processes ] 3")[:worker_processes]).to eq(2)
    end
  end

  describe "errors in the file" do
    it "name the place, the directive, the value and what is wanted" do
      expect(error_of("\n\nworker_processes 'four'\n").message)
        .to eq('pitchfork.conf.rb:3: worker_processes: got "four" (String), wanted an Integer of at least 1')
    end

    it "are ArgumentErrors" do
      expect(error_of("worker_processes 0")).to be_a(ArgumentError)
    end

    it "name the line that was evaluated, not that of the method it called" do
      expect(error_of("def four\n  worker_processes 4.0\nend\nfour\n").message).to start_with("pitchfork.conf.rb:2: ")
      File.write("helper.rb", "def self.of_helper(config) = config.worker_processes(nil)")
      error = error_of("TOPLEVEL_BINDING.eval(File.read('helper.rb'), 'helper.rb')\n" \
                       "TOPLEVEL_BINDING.receiver.of_helper(self)\n")
      expect(error.message).to eq("pitchfork.conf.rb:2: worker_processes: got nil, wanted an Integer of at least 1")
    end

    it "shorten a long value and keep to one line" do
      long = complaint_of("worker_processes 'x' * 5000")
      expect(long).to eq("worker_processes: got \"#{"x" * 78}… (String), wanted an Integer of at least 1")
      several = complaint_of("o = Object.new; def o.inspect = \"a\\n  b\"; worker_processes o")
      expect(several).to eq("worker_processes: got a b (Object), wanted an Integer of at least 1")
    end

    it "suggest a directive for one that is unknown" do
      error = error_of("worker_procesess 4")
      expect(error.message)
        .to eq('pitchfork.conf.rb:1: unknown directive "worker_procesess"; did you mean worker_processes?')
      expect(error.cause).to be_a(NoMethodError)
      expect(complaint_of("spawn_timeuot")).to eq('unknown directive "spawn_timeuot"; did you mean spawn_timeout?')
      expect(complaint_of("zzz 1")).to eq('unknown directive "zzz"')
    end

    it "do without suggestions where there is no spell checker" do
      hide_const("DidYouMean::SpellChecker")
      expect(complaint_of("worker_procesess 4")).to eq('unknown directive "worker_procesess"')
    end

    it "say what to do instead of a directive of Unicorn's, also as an option" do
      { "preload_app true" => /\Apreload_app: remove it: the application is always loaded/,
        "user 'www', 'www'" => /\Auser: remove it and start the server as that user/,
        "before_exec { |server| }" => /\Abefore_exec: remove it/,
        "after_fork { |server, worker| }" => /\Aafter_fork: use after_worker_fork/,
        "worker_exec true" => /\Aworker_exec: remove it/,
        "default_middleware false" => /\Adefault_middleware: remove it/ }.each do |line, complaint|
        expect(complaint_of(line)).to match(complaint)
      end
      expect { described_class.new(preload_app: true) }.to raise_error(error_class, /\Aoptions: preload_app: remove it/)
    end

    it "can be rescued in the file" do
      config = configure("worker_processes 2\nworker_processes 0 rescue nil\npreload_app true rescue nil")
      expect(config[:worker_processes]).to eq(2)
    end

    it "say how many arguments a directive takes" do
      expect(complaint_of("worker_processes 1, 2"))
        .to eq("worker_processes: wrong number of arguments (given 2, expected 1)")
      expect(complaint_of("def (o = Object.new).listen(address) = address; o.listen"))
        .to eq("ArgumentError: wrong number of arguments (given 0, expected 1)")
      expect(complaint_of("listen")).to eq("listen: wrong number of arguments (given 0, expected 1..2)")
    end

    it "include Ruby's own, with their cause" do
      {
        "nil.nothing" => [NoMethodError, /\ANoMethodError: undefined method .nothing'/],
        "Integer('x')" => [ArgumentError, /\AArgumentError: invalid value for Integer/],
        "NoSuchThing::HERE" => [NameError, "NameError: uninitialized constant NoSuchThing"],
        "raise IOError, \"one\\ntwo\"" => [IOError, "IOError: one"],
        "raise IOError, 'far', ['elsewhere.rb:9']" => [IOError, nil],
        "require 'no/such/library'" => [LoadError, %r{\ALoadError: cannot load such file -- no/such/library}],
        "File.read('missing')" => [Errno::ENOENT, /\AErrno::ENOENT: No such file or directory/]
      }.each do |line, (cause, complaint)|
        error = error_of("\n#{line}\n")
        expect(error.cause).to be_instance_of(cause)
        expect(error.message.lines.size).to eq(1)
        if complaint
          expect(error.message.delete_prefix("pitchfork.conf.rb:2: ")).to match(complaint)
        else
          expect(error.message).to eq("pitchfork.conf.rb: IOError: far")
        end
      end
    end

    it "include syntax errors" do
      error = error_of("\n\nworker_processes 1 +\n")
      expect(error.message).to match(/\Apitchfork\.conf\.rb:[34]: syntax error.*unexpected/)
      expect(error.message).not_to match(/\n|\^/)
      expect(error.cause).to be_a(SyntaxError)
    end

    it "include syntax errors of another file" do
      File.write("other.rb", "puts(\n")
      expect(complaint_of("load './other.rb'")).to match(/\ASyntaxError: .*other\.rb:\d/)
    end

    it "leave an exit alone" do
      expect { configure("exit 3") }.to raise_error(SystemExit)
    end

    it "include a file that cannot be read" do
      expect { described_class.new(config_file: "missing.rb") }
        .to raise_error(
          an_instance_of(error_class)
            .and(having_attributes(message: "missing.rb: configuration file cannot be read (No such file or directory)",
                                   cause: an_instance_of(Errno::ENOENT)))
        )
      expect { described_class.new(config_file: ".") }.to raise_error(error_class, /\A\.: .*Is a directory/)
    end

    it "name the caller's line when a directive is called later" do
      config = described_class.new
      expect { config.worker_processes(0) }
        .to raise_error(error_class, /\A#{Regexp.escape(__FILE__)}:#{__LINE__ - 1}: worker_processes: got 0/)
    end
  end

  describe "the environment" do
    it "counts the workers where the configuration does not" do
      ENV["WEB_CONCURRENCY"] = "6"
      expect(described_class.new.native_settings[:worker_processes]).to eq(6)
      expect(configure("worker_processes 2")[:worker_processes]).to eq(2)
      expect(configure("worker_processes set[:worker_processes] * 2")[:worker_processes]).to eq(12)
    end

    it "is read once, when the file has been evaluated" do
      config = configure("ENV['WEB_CONCURRENCY'] = '3'")
      ENV["WEB_CONCURRENCY"] = "4"
      expect(config[:worker_processes]).to eq(3)
    end

    it "is refused where it makes no sense" do
      ["four", "0", "-1", "1.5", "1_0"].each do |text|
        ENV["WEB_CONCURRENCY"] = text
        expect { described_class.new }.to raise_error(
          error_class, "environment: WEB_CONCURRENCY: got #{text.inspect}, wanted an Integer of at least 1"
        )
        expect(configure("worker_processes 2")[:worker_processes]).to eq(2)
      end
    end

    it "names the port where the configuration does not" do
      ENV["PORT"] = "3000"
      expect(described_class.new.listeners.map(&:first)).to eq(["0.0.0.0:3000"])
      expect(addresses_of("listen 81")).to eq(["0.0.0.0:81"])
      expect(addresses_of("listen RACKUP[:port] + 1")).to eq(["0.0.0.0:3001"])
    end

    it "is refused where it names no port" do
      %w[http 65536 tcp://10.0.0.1:80].each do |text|
        ENV["PORT"] = text
        expect { described_class.new }.to raise_error(
          error_class, "environment: PORT: got #{text.inspect}, wanted an Integer from 0 to 65535"
        )
        expect(addresses_of("listen 81")).to eq(["0.0.0.0:81"])
      end
    end

    it "does not count where it is empty" do
      ENV["PORT"] = ENV["WEB_CONCURRENCY"] = " "
      expect(described_class.new[:worker_processes]).to eq(1)
      expect(described_class.new.listeners.map(&:first)).to eq(["0.0.0.0:8080"])
    end
  end

  describe "RACKUP" do
    it "says what the command line says" do
      rackup = described_class::RACKUP
      expect(%i[host port set_listener options other].map { |key| rackup[key] })
        .to eq(["0.0.0.0", 8080, false, { listeners: [] }, nil])
    end

    it "adds a listener when the command line names one" do
      described_class::RACKUP.update(host: "127.0.0.1", port: 9, set_listener: true)
      expect(addresses_of("listen 81")).to eq(["0.0.0.0:81", "127.0.0.1:9"])
    end

    it "takes a bare IPv6 host, and the port of the environment" do
      ENV["PORT"] = "3000"
      described_class::RACKUP.update(host: "::1", set_listener: true)
      expect(addresses_of("")).to eq(["[::1]:3000"])
    end

    it "is refused under its origin" do
      described_class::RACKUP.update(port: 70_000, set_listener: true)
      expect { described_class.new }.to raise_error(error_class, /\Acommand line: listen: got "0\.0\.0\.0:70000"/)
    end
  end
end
