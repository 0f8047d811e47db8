# frozen_string_literal: true

require "logger"
require "pathname"
require "stringio"
require "pitchfork_rs/configurator"

RSpec.describe PitchforkRs::Configurator, :in_tmpdir do
  let(:error_class) { PitchforkRs::ConfigurationError }

  around do |example|
    environment = ENV.to_h
    rackup = described_class::RACKUP.dup
    %w[PORT WEB_CONCURRENCY].each { |name| ENV.delete(name) }
    example.run
  ensure
    ENV.replace(environment)
    described_class::RACKUP.replace(rackup)
  end

  def configure(source, **options)
    File.write("pitchfork.conf.rb", source)
    described_class.new(config_file: "pitchfork.conf.rb", **options)
  end

  def error_of(source, **options)
    configure(source, **options)
    nil
  rescue error_class => e
    e
  end

  # The message, without the place it starts with.
  def complaint_of(line)
    error_of("\n#{line}\n")&.message&.delete_prefix("pitchfork.conf.rb:2: ")
  end

  def addresses_of(source, **options)
    configure(source, **options).listeners.map(&:first)
  end

  describe "without a file" do
    it "has defaults" do
      expect(described_class.new.native_settings).to eq(
        worker_processes: 1, soft_timeout: 20, cleanup_timeout: 2, spawn_timeout: 10, refork_max_unavailable: 1,
        mold_prepare: true, setpgid: true, service: false, max_consecutive_spawn_errors: nil,
        client_body_buffer_size: 114_688, client_header_timeout: 10, client_body_timeout: 30,
        client_min_rate: 500, client_max_header_size: 114_688, client_max_body_size: nil, write_timeout: 30,
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

  describe "numbers and booleans" do
    {
      worker_processes: 1, spawn_timeout: 1, refork_max_unavailable: 1, client_body_buffer_size: 0,
      client_min_rate: 0, client_max_header_size: 1024, client_max_body_size: 0
    }.each do |name, minimum|
      it "takes #{name} from #{minimum}" do
        expect(configure("#{name} #{minimum}")[name]).to eq(minimum)
        wanted = "wanted an Integer of at least #{minimum}"
        expect(complaint_of("#{name}(#{minimum - 1})")).to eq("#{name}: got #{minimum - 1} (Integer), #{wanted}")
        expect(complaint_of("#{name} #{minimum + 1}.0")).to eq("#{name}: got #{minimum + 1}.0 (Float), #{wanted}")
      end
    end

    %i[mold_prepare rewindable_input early_hints].each do |name|
      it "takes #{name} as true or false" do
        expect([true, false].map { |value| configure("#{name} #{value}").native_settings[name] }).to eq([true, false])
        expect(complaint_of("#{name} nil")).to eq("#{name}: got nil, wanted true or false")
        expect(complaint_of("#{name} 0")).to eq("#{name}: got 0 (Integer), wanted true or false")
      end
    end

    it "takes oob_gc as true, false or an interval" do
      expect([true, false].map { |value| configure("oob_gc #{value}")[:oob_gc] }).to eq([true, false])
      expect(configure("oob_gc every: 250")[:oob_gc]).to eq(every: 250)
      expect(described_class.new[:oob_gc]).to be(false)
      wanted = "wanted true, false or every: an Integer of at least 1"
      expect(complaint_of("oob_gc nil")).to eq("oob_gc: got nil, #{wanted}")
      expect(complaint_of("oob_gc 5")).to eq("oob_gc: got 5 (Integer), #{wanted}")
      ["every: 0", "every: 2.5", "every: 5, at: 7", "often: 5", "({})"].each do |value|
        expect(complaint_of("oob_gc #{value}")).to match(/\Aoob_gc: got \{.*\} \(Hash\), #{wanted}\z/)
      end
    end

    %i[client_header_timeout client_body_timeout write_timeout].each do |name|
      it "takes #{name} in seconds, whole or not" do
        times = [0.001, 1, 2.5]
        expect(times.map { |time| configure("#{name} #{time}").native_settings[name] }).to eq(times)
        wanted = "wanted a number of seconds of at least 0.001"
        expect(complaint_of("#{name} 0")).to eq("#{name}: got 0 (Integer), #{wanted}")
        expect(complaint_of("#{name} '1'")).to eq("#{name}: got \"1\" (String), #{wanted}")
      end
    end

    it "takes nil for no limit of bodies" do
      expect(configure("client_max_body_size 5; client_max_body_size nil")[:client_max_body_size]).to be_nil
    end

    it "gives a tenth of the workers, rounded up, to refork_max_unavailable" do
      counts = [1, 10, 11, 20, 21].map { |count| configure("worker_processes #{count}")[:refork_max_unavailable] }
      expect(counts).to eq([1, 1, 2, 2, 3])
      config = configure("refork_max_unavailable 4; worker_processes 9")
      expect(config.native_settings).to include(refork_max_unavailable: 4)
    end
  end

  describe "timeout" do
    it "sets both halves, and their sum" do
      config = configure("timeout 3, cleanup: 5")
      expect(%i[soft_timeout cleanup_timeout timeout].map { |name| config[name] }).to eq([3, 5, 8])
      expect(config.native_settings).to include(soft_timeout: 3, cleanup_timeout: 5)
    end

    it "goes back to the default clean-up when called without" do
      expect(configure("timeout 30, cleanup: 5\ntimeout 40").native_settings)
        .to include(soft_timeout: 40, cleanup_timeout: 2)
    end

    it "refuses times that are too short or no Integers" do
      expect(complaint_of("timeout 2")).to eq("timeout: got 2 (Integer), wanted an Integer of at least 3")
      expect(complaint_of("timeout 20.5")).to eq("timeout: got 20.5 (Float), wanted an Integer of at least 3")
      expect(complaint_of("timeout 9, cleanup: 1"))
        .to eq("timeout: cleanup: got 1 (Integer), wanted an Integer of at least 2")
    end

    it "refuses other options" do
      expect(complaint_of("timeout 9, clenup: 3")).to eq("timeout: unknown option :clenup; did you mean :cleanup?")
      expect(complaint_of("timeout 9, 3")).to eq("timeout: got 3 (Integer), wanted options such as cleanup: value")
    end
  end

  describe "logger" do
    it "takes what responds to the methods of a logger" do
      expect(configure("logger(@mine = Logger.new(nil))")[:logger]).to be_a(Logger)
    end

    it "refuses what does not" do
      expect(complaint_of("logger nil"))
        .to eq("logger: got nil, wanted an object that responds to debug, info, warn, error and fatal")
      incomplete = "logger Struct.new(:debug, :info, :warn, :error).new"
      expect(complaint_of(incomplete)).to match(/\Alogger: got #<struct .* wanted an object that responds to/)
    end
  end

  describe "files and directories" do
    %i[stdout_path stderr_path pid].each do |name|
      it "take a file for #{name}, in a directory that exists, or nil for none" do
        expect(configure("#{name} 'x'\n#{name} nil")[name]).to be_nil
        expect(complaint_of("#{name} 5")).to eq("#{name}: got 5 (Integer), wanted a path, as a String or a Pathname")
        expect(complaint_of("#{name} ''")).to match(/\A#{name}: got "" .*wanted a path/)
        expect(complaint_of("#{name} \"a\\0b\"")).to match(/\A#{name}: got .*wanted a path/)
        expect(complaint_of("#{name} '/no/such/file'")).to eq(
          "#{name}: got \"/no/such/file\" (String), wanted a file in a directory that exists, there is no /no/such"
        )
        expect(complaint_of("#{name} '.'")).to eq("#{name}: got \".\" (String), wanted a file, this is a directory")
        expect(complaint_of("#{name} '~no-such-user-here/x'")).to match(/\A#{name}: got .*which is no valid path/)
      end
    end
  end

  describe "log_format" do
    it "is that of the default logger, which others keep as it is" do
      config = configure("log_format :json\nConfigurator::DEFAULTS[:logger].progname = '[X]'")
      default = described_class::DEFAULTS[:logger]
      expect([config[:logger].formatter.class, config[:logger].progname, default.formatter.class])
        .to eq([PitchforkRs::Log::JsonFormatter, "[X]", Logger::Formatter])
      expect(configure("log_format :text")[:logger]).to equal(default)
    ensure
      default.progname = "[Pitchfork]"
    end

    it "is :text or :json" do
      expect(complaint_of("log_format 'json'")).to eq('log_format: got "json" (String), wanted one of :text, :json')
    end

    it "is refused together with a logger, in any order" do
      complaint = "log_format: got :json and a logger, which has a format of its own; wanted one of them"
      expect(error_of("log_format :json\nlogger Logger.new(nil)").message).to eq("pitchfork.conf.rb:1: #{complaint}")
      expect(error_of("logger Logger.new(nil)\nlog_format :json").message).to eq("pitchfork.conf.rb:2: #{complaint}")
    end
  end

  describe "refork_after and refork_condition" do
    it "are not set by default" do
      expect(described_class.new[:refork_condition]).to be_nil
    end

    it "makes a condition of limits" do
      condition = configure("refork_after [2, false]")[:refork_condition]
      worker = Struct.new(:generation, :requests_count, :to_log)
      answers = [[0, 1], [0, 2], [1, 2]].map { |values| condition.met?(worker.new(*values), Logger.new(nil)) }
      expect([condition.class, answers]).to eq([PitchforkRs::ReforkCondition::RequestsCount, [false, true, false]])
    end

    it "takes limits that are Integers, of which the last may be false" do
      good = ["[1]", "[50, 100, 1000]", "[50, false]", "[false]"]
      bad = ["50", "nil", "[]", "[nil]", "[0]", "[1, '2']", "[1.5]", "[false, 2]", "[1, false, false]", "[1, nil]"]
      expect(good.map { |limits| complaint_of("refork_after #{limits}") }).to all(be_nil)
      bad.each do |limits|
        expect(complaint_of("refork_after #{limits}"))
          .to match(/\Arefork_after: got .*, wanted an Array of Integers of at least 1/), limits
      end
    end

    it "takes an object that responds to met?, by directive or by set" do
      condition = "Class.new { def met?(worker, logger) = worker == logger }.new"
      ["refork_condition(#{condition})", "set[:refork_condition] = #{condition}"].each do |line|
        expect(configure("refork_after [1]\n#{line}")[:refork_condition].met?(1, 1)).to be(true)
      end
      expect(complaint_of("refork_condition Object")).to eq(
        "refork_condition: got Object (Class), wanted an object that responds to met?"
      )
    end

    it "forgets the condition at nil" do
      expect(configure("refork_after [1]\nrefork_condition nil")[:refork_condition]).to be_nil
      expect(configure("refork_after [1]\nset[:refork_condition] = nil")[:refork_condition]).to be_nil
    end
  end

  describe "set" do
    it "is a Hash that reads defaults, and holds what was set" do
      set = configure("spawn_timeout 4").set
      expect([set, set[:spawn_timeout], set[:soft_timeout], set.key?(:soft_timeout), set.key?(:spawn_timeout)])
        .to match([a_kind_of(Hash), 4, 20, false, true])
    end

    it "verifies whatever is stored" do
      complaint = "refork_condition: got 1 (Integer), wanted an object that responds to met?"
      ["set[:refork_condition] = 1", "set.store(:refork_condition, 1)", "set.merge!(refork_condition: 1)",
       "set.update({}, { refork_condition: 1 })"].each { |line| expect(complaint_of(line)).to eq(complaint) }
    end

    it "refuses a setting that there is not" do
      expect(complaint_of("set[:refork_conditon] = nil"))
        .to eq("unknown setting :refork_conditon; did you mean :refork_condition?")
      expect(complaint_of("set[:timeout] = 30")).to match(/\Aunknown setting :timeout(?!.*did you mean :timeout)/)
    end
  end

  describe "hooks" do
    arities = {
      before_fork: 1, after_mold_fork: 2, after_worker_fork: 2, after_worker_ready: 2, after_monitor_ready: 1,
      before_worker_exit: 2, after_worker_exit: 3, after_request_complete: 3
    }

    arities.each do |name, arity|
      it "takes a block of #{arity} for #{name}" do
        parameters = %w[a b c d]
        config = configure("#{name} { |#{parameters.first(arity).join(", ")}| :called }")
        expect(config[name].call(*parameters.first(arity))).to eq(:called)
        [arity - 1, arity + 1].each do |other|
          expect(complaint_of("#{name} { |#{parameters.first(other).join(", ")}| }")).to match(
            /\A#{name}: got #<Proc:.*> \(Proc of arity #{other}\), wanted .* exactly #{arity} argument/
          )
        end
      end
    end

    it "takes lambdas, procs and methods" do
      source = <<~RUBY
        before_fork ->(server) { server }
        after_worker_fork proc { |server, worker| [server, worker] }
        def leave(server, worker) = [worker, server]
        before_worker_exit method(:leave)
      RUBY
      config = configure(source)
      called = [config[:before_fork].call(1), config[:after_worker_fork].call(1, 2),
                config[:before_worker_exit].call(1, 2)]
      expect(called).to eq([1, [1, 2], [2, 1]])
    end

    it "refuses optional arguments, other objects, and two hooks at once" do
      expect(complaint_of("before_fork { |server = nil| }")).to match(/\(Proc of arity (0|-1)\)/)
      expect(complaint_of("before_fork ->(*all) {}")).to match(/\(Proc of arity -1\)/)
      expect(complaint_of("before_fork :to_s"))
        .to eq("before_fork: got :to_s (Symbol), wanted a block, Proc or Method that takes exactly 1 argument (server)")
      expect(complaint_of("before_fork(->(a) {}) { |server| }")).to match(/\Abefore_fork: got .* and a block: wanted/)
    end

    it "goes back to the default at nil" do
      config = configure("after_worker_ready { |a, b| }\nafter_worker_ready nil\nbefore_fork { |a| }\nbefore_fork nil")
      expect([config[:after_worker_ready], config[:before_fork]])
        .to eq([described_class::DEFAULTS.fetch(:after_worker_ready), nil])
    end

    it "raises Ruby's own error for what is no method, once the file is done" do
      config = configure("before_fork { |server| worker_procesess 4 }")
      expect { config[:before_fork].call(nil) }.to raise_error(NoMethodError, /worker_procesess/)
    end
  end

  describe "default hooks" do
    let(:log) { StringIO.new }
    let(:server) { Struct.new(:logger).new(Logger.new(log)) }
    let(:worker) { Struct.new(:to_log).new("worker=0 gen=1 pid=9") }

    def line_of(name, *arguments)
      described_class.new[name].call(server, *arguments)
      log.string[/(?:INFO|ERROR) -- : .*/]
    end

    it "log a process's life" do
      expect(line_of(:after_worker_fork, worker)).to eq("INFO -- : worker=0 gen=1 pid=9 spawned")
      log.truncate(0)
      expect(line_of(:after_mold_fork, worker)).to eq("INFO -- : worker=0 gen=1 pid=9 spawned")
      log.truncate(0)
      expect(line_of(:after_worker_ready, worker)).to eq("INFO -- : worker=0 gen=1 pid=9 ready")
      log.truncate(0)
      expect(line_of(:after_monitor_ready)).to eq("INFO -- : monitor pid=#{Process.pid} ready")
    end

    it "log an end by its success" do
      { true => "INFO", false => "ERROR", nil => "ERROR" }.each do |success, severity|
        log.truncate(0)
        status = instance_double(Process::Status, success?: success, inspect: "#<Process::Status: pid 9>")
        expect(line_of(:after_worker_exit, worker, status))
          .to eq("#{severity} -- : worker=0 gen=1 pid=9 reaped (#<Process::Status: pid 9>)")
      end
    end

    it "are nil elsewhere" do
      names = %i[before_fork before_worker_exit after_request_complete]
      expect(names.map { |name| described_class.new[name] }).to all(be_nil)
    end
  end

  describe "timeout_signal" do
    it "takes a name with and without SIG" do
      expect(%i[ABRT SIGABRT].map { |name| configure("timeout_signal :#{name}")[:timeout_signal] })
        .to eq(%i[ABRT SIGABRT])
    end
  end

  describe "listen" do
    {
      "8081" => "0.0.0.0:8081", "'8081'" => "0.0.0.0:8081", "'127.0.0.1:80'" => "127.0.0.1:80",
      "'*:80'" => "0.0.0.0:80", "':80'" => "0.0.0.0:80",
      "'[::1]:80'" => "[::1]:80", "'[0:0::0:1]:0080'" => "[::1]:80", "'[::]:80'" => "[::]:80",
      "0" => "0.0.0.0:0", "65535" => "0.0.0.0:65535", "'/run/app.sock'" => "/run/app.sock",
      "'/run//x/../app.sock'" => "/run/app.sock", "'unix:/run/app.sock'" => "/run/app.sock",
      "'unix:///run/app.sock'" => "/run/app.sock"
    }.each do |written, canonical|
      it "takes #{written} for #{canonical}" do
        expect(addresses_of("listen #{written}")).to eq([canonical])
      end
    end

    it "expands paths" do
      ENV["HOME"] = "/home/somebody"
      expect(addresses_of("listen '~/x.sock'\nlisten 'unix:rel/x.sock'\nlisten 'unix:~/y.sock'"))
        .to eq(["/home/somebody/x.sock", File.expand_path("rel/x.sock"), "/home/somebody/y.sock"])
    end

    it "resolves host names to the first address there is" do
      { "six.test" => "2001:db8::1", "four.test" => "192.0.2.1" }.each do |host, address|
        info = Addrinfo.new(Socket.sockaddr_in(80, address))
        allow(Addrinfo).to receive(:tcp).with(host, 80).and_return(info)
      end
      expect(addresses_of("listen 'six.test:80'\nlisten 'four.test:80'")).to eq(["[2001:db8::1]:80", "192.0.2.1:80"])
    end

    it "names a host that does not resolve" do
      allow(Addrinfo).to receive(:tcp).and_raise(SocketError, "not known")
      expect(complaint_of("listen 'nowhere.test:80'"))
        .to eq('listen: got "nowhere.test:80" (String), host "nowhere.test" does not resolve (not known)')
    end

    it "refuses other forms" do
      ["'localhost'", "'80 '", "''", "'unix:'", "'::1:80'", "'[::1]'", "'host:'", "'rel/x.sock'", "nil", ":sym", "80.0",
       "['a:1']"].each do |written|
        expect(complaint_of("listen #{written}")).to match(/\Alisten: got .*, wanted a port, "host:port"/), written
      end
    end

    it "refuses ports out of range" do
      ["65536", "-1", "'1.2.3.4:65536'"].each do |written|
        expect(complaint_of("listen(#{written})")).to match(/\Alisten: got .*, wanted a port from 0 to 65535\z/)
      end
    end

    it "refuses paths that no socket can have" do
      expect(complaint_of("listen '/#{"x" * 106}'")).to be_nil
      expect(complaint_of("listen '/#{"x" * 107}'")).to match(/at most 107 bytes, this one takes 108 when expanded\z/)
      expect(complaint_of('listen "/a\0b"')).to match(/\Alisten: got .* which is no valid address/)
      expect(complaint_of("listen '~no-such-user-here/x.sock'")).to match(/\Alisten: got .* which is no valid address/)
      expect(complaint_of('listen "\xFF:80"')).to match(/\Alisten: got .* which is no valid address/)
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
