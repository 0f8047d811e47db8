# frozen_string_literal: true

require "bundler"
require "fileutils"
require "open3"
require "rbconfig"
require "support/documentation"
require "support/documentation/configuration_files"
require "support/server"

module Documentation
  # Executes the code of the documentation. Each kind of block is a line of this table: how its info string begins, and
  # what is done with it, in an empty directory. A block whose kind is not here fails.
  module Examples
    include Waiting
    include ConfigurationFiles

    KINDS = {
      # Is config/pitchfork.rb, and `--check-config` refuses it.
      "ruby config refused" => :refuse_config,
      # Is config/pitchfork.rb, and `--check-config` accepts it. Moreover a server is started with it and asked; so it
      # must not listen anywhere.
      "ruby config served" => :serve_config,
      # Is the whole file of this repository whose path follows, and as config/pitchfork.rb `--check-config` accepts it.
      "ruby config file" => :check_config_file,
      # Is config/pitchfork.rb, and `--check-config` accepts it.
      "ruby config" => :check_config,
      # Stands so in the file of this repository whose path follows, which other specs execute.
      "ruby file" => :compare_file,
      # Is config.ru: a server is started with it and asked.
      "ruby app" => :serve_app,
      # Is a Gemfile that names this gem.
      "ruby gemfile" => :read_gemfile,
      # Is run by Ruby, and succeeds.
      "ruby script" => :run_script,
      # Is what the last `ruby script` above prints.
      "text printed" => :compare_script,
      # Is what the command that follows prints when it is run in the root of this repository.
      "text output of" => :compare_output,
      # Its commands are run beside a server with the last `ruby config served` and `ruby app` above, whose port and
      # monitor are $PORT and $MONITOR, and which logs to server.log.
      "console server" => :run_beside_server,
      # Its commands are run in a directory with the last `ruby config` and `ruby app` above. Lines behind a command are
      # what it prints; `…` stands for anything.
      "console" => :run_commands,
      # Is the unit whose file name follows.
      "ini systemd" => :verify_unit,
      "logrotate" => :verify_logrotate,
      "dockerfile" => :verify_dockerfile,
      "procfile" => :verify_procfile,
      "nginx" => :verify_nginx
    }.freeze
    DIRECTORIES = %w[config log tmp/pids tmp/sockets].freeze
    LIBRARIES = File.join(__dir__, "stand_ins.rb")
    # Readers have these programs. A machine that runs the specs need not.
    OPTIONAL_PROGRAMS = %w[curl pgrep].freeze
    private_constant :DIRECTORIES, :LIBRARIES, :OPTIONAL_PROGRAMS

    def self.kind(block) = KINDS.keys.find { |kind| "#{block.info} ".start_with?("#{kind} ") }

    def execute(block)
      kind = Examples.kind(block)
      kind or raise "#{block.place}: nothing executes a block of the kind #{block.info.inspect}; there are: " \
                    "#{KINDS.keys.join(", ")}"
      send(KINDS.fetch(kind), block)
    end

    private

    def check_config(block)
      furnish(config: block.text)
      check_command_line("")
    end

    def refuse_config(block)
      furnish(config: block.text)
      run_command("! pitchfork-rs --check-config >/dev/null 2>&1", "")
    end

    def check_config_file(block)
      expect(file_of(block)).to eq(block.text)
      check_config(block)
    end

    def compare_file(block)
      expect(file_of(block)).to include(block.text)
    end

    def file_of(block) = File.read(File.join(ROOT, block.info.split.last))

    def serve_config(block)
      check_config(block)
      expect_good_service(config: block.text)
    end

    def serve_app(block)
      expect_good_service(rackup: block.text)
    end

    # Nobody complains about anything, from the start to the end.
    def expect_good_service(**files)
      with_server(**files) do |server|
        expect(server.get.code).to eq("200")
        wait_until("the worker, after its request") { server.workers.all?(&:idle?) }
        expect(server.stop).to be_success
        expect(server.log).not_to match(/^(?:W|E|F), /)
      end
    end

    def read_gemfile(block)
      File.write("Gemfile", block.text)
      gems = Bundler::Dsl.new
      gems.eval_gemfile("Gemfile")
      expect(gems.dependencies.map(&:name)).to include("pitchfork-rs")
    end

    def run_script(block)
      File.write("script.rb", block.text)
      command = [RbConfig.ruby, "-w", "-I#{ROOT}/lib", "script.rb"]
      out, err, status = Timeout.timeout(PATIENCE) { Open3.capture3(Surroundings::ENVIRONMENT, *command) }
      expect(status).to be_success, err
      out
    end

    def compare_script(block)
      script = Block.new(block.page, block.line, "ruby script", block.above("ruby script", nil))
      expect(run_script(script)).to match(pattern(block.text))
    end

    def compare_output(block)
      command = block.info.delete_prefix("text output of ")
      out, err, status = Open3.capture3(Surroundings::ENVIRONMENT, command, chdir: ROOT)
      expect(status).to be_success, err
      expect(out).to eq(block.text)
    end

    def run_commands(block)
      furnish(config: block.above("ruby config", ""), rackup: block.above("ruby app", ServerExamples::HELLO))
      commands(block).each { |command, output| run_command(command, output) }
    end

    def run_beside_server(block)
      missing = OPTIONAL_PROGRAMS.find { |name| block.text.match?(/\b#{name} /) && !installed?(name) }
      skip "#{missing} is not installed" if missing

      app = block.above("ruby app", ServerExamples::HELLO)
      with_server(rackup: app, config: block.above("ruby config served", "")) do |server|
        variables = { "PORT" => server.port.to_s, "MONITOR" => server.pid.to_s }
        commands(block).each do |command, output|
          # What is shown may take a while to come about.
          patiently(output.empty? ? 0 : 10) { run_command(command, output, server.directory, variables) }
        end
      end
    end

    def patiently(seconds)
      deadline = now + seconds
      begin
        yield
      rescue RSpec::Expectations::ExpectationNotMetError
        raise if now >= deadline

        sleep 0.05
        retry
      end
    end

    def run_command(command, output, directory = ".", variables = {})
      variables = Surroundings::ENVIRONMENT.merge("PATH" => "#{commands_directory}:#{ENV.fetch("PATH")}", **variables)
      printed, status = Timeout.timeout(PATIENCE) { Open3.capture2e(variables, "sh", "-c", command, chdir: directory) }
      expect(printed).to match(pattern(output)), "$ #{command}\n#{printed}"
      expect(status).to be_success, "$ #{command}\n#{printed}" if output.empty?
    end

    def installed?(program) = system("command -v #{program} >/dev/null")

    # Pairs of a command and what it prints.
    def commands(block)
      block.text.split(/^\$ /).drop(1).map { |part| part.match(/\A((?:[^\n]*\\\n)*[^\n]*)\n(.*)\z/m).captures }
    end

    def pattern(text) = /\A#{text.split("…", -1).map { |part| Regexp.escape(part) }.join(".*?")}\z/m

    # Fills the working directory as that of an application.
    def furnish(config: "", rackup: ServerExamples::HELLO)
      FileUtils.mkdir_p(DIRECTORIES)
      File.write("config/pitchfork.rb", config)
      File.write("config.ru", rackup)
    end

    def check_command_line(arguments)
      run_command("pitchfork-rs --check-config #{arguments} >/dev/null", "", ".", { "PORT" => "3000" })
    end

    # The names by which the documentation calls the command.
    def commands_directory
      @commands_directory ||= File.expand_path("bin").tap do |directory|
        FileUtils.mkdir_p(directory)
        command = "#{RbConfig.ruby} -I#{ROOT}/lib -r#{LIBRARIES} #{ROOT}/exe/pitchfork-rs"
        { "pitchfork-rs" => "exec #{command} \"$@\"", "bundle" => "shift; exec \"$@\"" }.each do |name, line|
          File.write(File.join(directory, name), "#!/bin/sh\n#{line}\n", perm: 0o755)
        end
      end
    end

    def with_server(rackup: ServerExamples::HELLO, config: "")
      expect(config).not_to match(/^\s*listen\b/), "an example that is served must leave addresses to the spec"
      directory = File.expand_path("server-#{@servers.to_a.size}")
      DIRECTORIES.each { |name| FileUtils.mkdir_p(File.join(directory, name)) }
      server = start(rackup, config: "#{config}\nrequire #{LIBRARIES.dump}\n", log: "server.log", ready: false)
      server.alive_until("listening") { server.addresses.any? }
      yield server
    end
  end
end
