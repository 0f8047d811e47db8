# frozen_string_literal: true

require "logger"
require "pathname"
require "stringio"
require "support/configuration"

# What each directive takes and refuses.
RSpec.describe PitchforkRs::Configurator, :in_tmpdir do
  include_context "with configurations"

  describe "numbers and booleans" do
    {
      worker_processes: 1, spawn_timeout: 1, refork_max_unavailable: 1, client_body_buffer_size: 0,
      client_min_rate: 0, keepalive_requests: 1, response_buffer_size: 0, client_max_header_size: 1024,
      client_max_body_size: 0
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

    it "takes keepalive_timeout in seconds, whole or not, or 0" do
      times = [0, 0.0, 0.001, 65, 2.5]
      taken = times.map { |time| configure("keepalive_timeout #{time}").native_settings[:keepalive_timeout] }
      expect(taken).to eq(times)
      wanted = "wanted 0, or a number of seconds of at least 0.001"
      { "0.0001" => "0.0001 (Float)", "-1" => "-1 (Integer)", "'5'" => '"5" (String)', "nil" => "nil",
        "Float::NAN" => "NaN (Float)", "Complex(1, 1)" => "(1+1i) (Complex)" }.each do |value, got|
        expect(complaint_of("keepalive_timeout(#{value})")).to eq("keepalive_timeout: got #{got}, #{wanted}")
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
end
