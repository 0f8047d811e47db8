# frozen_string_literal: true

require "support/server"
require "json"
require "open3"

RSpec.describe "a program that embeds the server", :server do
  # What the program prints.
  def run_program(source)
    File.write("program.rb", "require 'json'\nrequire 'pitchfork_rs'\n#{source}")
    library = File.expand_path("../../lib", __dir__)
    output, log, status = Open3.capture3(RbConfig.ruby, "-I#{library}", "program.rb")
    expect(status).to be_success, log
    output.lines(chomp: true)
  end

  it "goes on after it, with its address free and its signal handlers as they were" do
    lines = run_program(<<~'RUBY')
      old = trap("TERM") { puts "the program's own"; $stdout.flush }
      2.times do
        options = { listeners: ["127.0.0.1:0"], logger: Logger.new($stderr), config_file: nil }
        server = PitchforkRs::HttpServer.new(->(env) { [200, {}, [env["PATH_INFO"]]] }, options).start
        Process.kill("QUIT", Process.pid)
        puts "status #{server.join}"
      end
      Process.kill("TERM", Process.pid)
      puts Dir.children("/proc/self/fd").count { |fd| File.readlink("/proc/self/fd/#{fd}").start_with?("socket:") rescue false }
    RUBY
    expect(lines).to eq(["status 0", "status 0", "the program's own", "0"])
  end

  it "gives directives and hooks as options, and gets the server's facts" do
    lines = run_program(<<~'RUBY')
      notes = Queue.new
      logger = Logger.new("it.log")
      note = ->(line) { File.write("notes", line + "\n", mode: "a") }
      options = {
        config_file: nil, listeners: ["unix:it.sock"], worker_processes: 2, timeout: 9, logger: logger,
        after_worker_ready: ->(server, worker) { note.("ready #{worker.nr} #{server.worker_processes}") },
        before_worker_exit: ->(server, worker) { note.("leaving #{worker.nr} #{server.config[:soft_timeout]}") }
      }
      server = PitchforkRs::HttpServer.new(->(env) { [200, {}, [env["pitchfork.worker"].nr.to_s]] }, options).start(true)
      puts JSON.generate([server.logger.equal?(logger), server.timeout, server.worker_processes, server.config[:timeout],
                          server.config.listeners.map(&:first), File.readlines("notes", chomp: true).grep(/ready/).sort])
      UNIXSocket.open("it.sock") { |socket| socket.write("GET / HTTP/1.0\r\n\r\n"); puts socket.read[/\d\z/] }
      Process.kill("TERM", Process.pid)
      puts server.join
      puts File.readlines("notes", chomp: true).grep(/leaving/).sort
    RUBY
    facts = [true, 11, 2, 11, [File.expand_path("it.sock")], ["ready 0 2", "ready 1 2"]]
    expect([JSON.parse(lines[0]), lines[1].to_i]).to match([facts, a_value_between(0, 1)])
    expect(lines[2..]).to eq(["0", "leaving 0 9", "leaving 1 9"])
  end

  it "has no reactor before it joins, and clients that are waited for none the less" do
    lines = run_program(<<~'RUBY')
      options = { config_file: nil, listeners: ["unix:it.sock"], logger: Logger.new($stderr), keepalive_timeout: 2 }
      server = PitchforkRs::HttpServer.new(->(_env) { [204, {}, []] }, options).start(true)
      UNIXSocket.open("it.sock") { |socket| socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); puts socket.read.lines.first }
      Process.kill("TERM", Process.pid)
      puts server.join
    RUBY
    expect(lines).to eq(["HTTP/1.1 204 No Content", "0"])
  end

  it "collects garbage before its first fork ever, unless it is told not to" do
    lines = run_program(<<~'RUBY')
      [false, true, true].each do |mold_prepare|
        options = { config_file: nil, listeners: ["127.0.0.1:0"], logger: Logger.new($stderr), mold_prepare: }
        server = PitchforkRs::HttpServer.new(->(_env) {}, options)
        before = GC.stat(:major_gc_count)
        server.start(true)
        puts GC.stat(:major_gc_count) - before
        Process.kill("QUIT", Process.pid)
        server.join
      end
    RUBY
    expect(lines.map(&:to_i)).to match([a_value_between(0, 1), a_value_between(4, 6), a_value_between(0, 1)])
  end

  it "is told in exceptions what went wrong, and can go on" do
    lines = run_program(<<~'RUBY')
      pid_file = File.expand_path("it.pid")
      start = ->(app, **options) do
        options = { config_file: nil, listeners: ["unix:it.sock"], logger: Logger.new(nil), pid: pid_file }.merge(options)
        PitchforkRs::HttpServer.new(app, options).start.join
      rescue ArgumentError, StandardError => e
        puts "#{e.class}: #{e.message}"
      end
      start.(-> { raise "no luck" })
      start.(->(_env) {}, worker_processes: 0)
      start.(->(_env) {}, worker_procesess: 1)
      File.write("c.rb", "listen 'unix:taken.sock', tries: 0")
      UNIXServer.open("taken.sock") { start.(->(_env) {}, config_file: "c.rb", listeners: []) }
      puts File.exist?(pid_file)
    RUBY
    expect(lines).to match(
      ["PitchforkRs::BootFailure: the application could not be loaded, see the log",
       "PitchforkRs::ConfigurationError: options: worker_processes: got 0 (Integer), wanted an Integer of at least 1",
       'PitchforkRs::ConfigurationError: options: unknown directive "worker_procesess"; did you mean worker_processes?',
       /\APitchforkRs::BootFailure: c\.rb:1: listen: Address already in use - bind\(.*taken\.sock\)\z/, "false"]
    )
  end

  it "is told at once that it waits for a server that was never started" do
    lines = run_program(<<~'RUBY')
      server = PitchforkRs::HttpServer.new(->(_env) {}, listeners: ["127.0.0.1:0"], config_file: nil)
      begin
        server.join
      rescue StandardError => e
        puts "#{e.class}: #{e.message}"
      end
    RUBY
    expect(lines).to eq(["RuntimeError: this server was not started: start comes before join"])
  end

  it "gets the status of a server that has ended while it was waited for" do
    File.write("program.rb", <<~'RUBY')
      require "pitchfork_rs"
      options = { listeners: ["127.0.0.1:0"], logger: Logger.new($stderr), config_file: nil,
                  max_consecutive_spawn_errors: 1, after_worker_fork: ->(_server, _worker) { raise "no luck" } }
      puts "status #{PitchforkRs::HttpServer.new(->(_env) { [200, {}, []] }, options).start.join}"
    RUBY
    library = File.expand_path("../../lib", __dir__)
    output, log, status = Open3.capture3(RbConfig.ruby, "-I#{library}", "program.rb")
    expect(output).to eq("status 1\n"), log
    expect(status).to be_success
  end
end
