# frozen_string_literal: true

# rubocop:disable Layout/LineLength -- what is shown as one line stands in one line here

# What people get wrong, and the line that they get to see for it. One row is one mistake: a name, what is wrong, and
# the line without the command's name.
#
# `config` is what follows the first line of `c.rb`, so it stands in line 2; `ru` is the application; `arguments` and
# `env` are those of the command. The examples print all lines if PITCHFORK_RS_SHOW_MISTAKES is set.
module Mistakes
  Mistake = Struct.new(:name, :config, :ru, :arguments, :env, :line, keyword_init: true)
  @all = []

  class << self
    attr_reader :all

    def config(name, config, line) = add(name, line, config: config)
    def arguments(name, arguments, line, **more) = add(name, line, arguments: arguments, **more)
    def environment(name, env, line) = add(name, line, env: env)
    def options_line(name, options, line) = add(name, line, ru: "#\\ #{options}\n")

    private

    def add(name, line, **what)
      defaults = { config: "", ru: "run 1", arguments: %w[-c c.rb], env: {} }
      @all << Mistake.new(name: name, line: line, **defaults, **what)
    end
  end

  # Wrong types and ranges

  config "a String for a number", "worker_processes 'four'",
         'c.rb:2: worker_processes: got "four" (String), wanted an Integer of at least 1'
  config "no worker at all", "worker_processes 0",
         "c.rb:2: worker_processes: got 0 (Integer), wanted an Integer of at least 1"
  config "a Float", "spawn_timeout 2.5",
         "c.rb:2: spawn_timeout: got 2.5 (Float), wanted an Integer of at least 1"
  config "nil", "refork_max_unavailable nil",
         "c.rb:2: refork_max_unavailable: got nil, wanted an Integer of at least 1"
  config "a timeout that is too short", "timeout 1",
         "c.rb:2: timeout: got 1 (Integer), wanted an Integer of at least 3"
  config "a clean-up that is too short", "timeout 20, cleanup: 0",
         "c.rb:2: timeout: cleanup: got 0 (Integer), wanted an Integer of at least 2"
  config "no time at all", "client_header_timeout 0",
         "c.rb:2: client_header_timeout: got 0 (Integer), wanted a number of seconds of at least 0.001"
  config "a connection that is good for nothing", "keepalive_requests 0",
         "c.rb:2: keepalive_requests: got 0 (Integer), wanted an Integer of at least 1"
  config "a time before now", "keepalive_timeout(-1)",
         "c.rb:2: keepalive_timeout: got -1 (Integer), wanted 0, or a number of seconds of at least 0.001"
  config "a negative size", "client_body_buffer_size(-1)",
         "c.rb:2: client_body_buffer_size: got -1 (Integer), wanted an Integer of at least 0"
  config "a size no head fits into", "client_max_header_size 100",
         "c.rb:2: client_max_header_size: got 100 (Integer), wanted an Integer of at least 1024"
  config "a String for a boolean", "early_hints 'yes'",
         'c.rb:2: early_hints: got "yes" (String), wanted true or false'
  config "a count for a switch", "oob_gc 250",
         "c.rb:2: oob_gc: got 250 (Integer), wanted true, false or every: an Integer of at least 1"
  config "never as an interval", "oob_gc every: 0",
         /\Ac\.rb:2: oob_gc: got \{.*every.*0\} \(Hash\), wanted true, false or every: an Integer of at least 1\z/
  config "a count for limits", "refork_after 50",
         "c.rb:2: refork_after: got 50 (Integer), wanted an Array of Integers of at least 1, such as [50, 100, 1000], " \
         "the last of which may be false"
  config "a condition that is none", "refork_condition :often",
         "c.rb:2: refork_condition: got :often (Symbol), wanted an object that responds to met?"
  config "a path for a logger", "logger 'log/app.log'",
         'c.rb:2: logger: got "log/app.log" (String), wanted an object that responds to debug, info, warn, error and fatal'
  config "a format there is not", "log_format :xml",
         "c.rb:2: log_format: got :xml (Symbol), wanted one of :text, :json"
  config "a value of many lines", "worker_processes \"a\\nb\" * 99",
         /\Ac\.rb:2: worker_processes: got "a\\nba\\nb.{60,80}… \(String\), wanted an Integer of at least 1\z/

  # Arities

  config "two numbers", "worker_processes 1, 2",
         "c.rb:2: worker_processes: wrong number of arguments (given 2, expected 1)"
  config "a directive without its value", "listen",
         "c.rb:2: listen: wrong number of arguments (given 0, expected 1..2)"
  config "a hook of Unicorn's arity", "before_fork { |server, worker| }",
         /\Ac\.rb:2: before_fork: got #<Proc:\S+ c\.rb:2> \(Proc of arity 2\), wanted a block, Proc or Method that takes exactly 1 argument \(server\)\z/
  config "a hook that is no callable", "after_worker_fork 'Metrics.connect'",
         'c.rb:2: after_worker_fork: got "Metrics.connect" (String), wanted a block, Proc or Method that takes exactly 2 ' \
         "arguments (server, worker)"
  config "two hooks at once", "before_fork(->(server) {}) { |server| }",
         /\Ac\.rb:2: before_fork: got #<Proc:.* \(Proc of arity 1\), and a block: wanted one of them\z/

  # Addresses

  config "a port out of range", "listen 70_000",
         "c.rb:2: listen: got 70000 (Integer), wanted a port from 0 to 65535"
  config "a host without a port", "listen 'localhost'",
         'c.rb:2: listen: got "localhost" (String), wanted a port, "host:port", "*:port", "[IPv6]:port", "/path.sock", ' \
         '"~/path.sock" or "unix:path.sock"'
  config "a host that does not resolve", "listen 'no-such-host.invalid:80'",
         /\Ac\.rb:2: listen: got "no-such-host\.invalid:80" \(String\), host "no-such-host\.invalid" does not resolve \(.+\)\z/
  config "a socket path that is too long", "listen '/#{"x" * 200}'",
         %r{\Ac\.rb:2: listen: got "/x+… \(String\), wanted a socket path of at most 107 bytes, this one takes 201 when expanded\z}
  config "a socket of an unknown user's", "listen '~no-such-user-here/x.sock'",
         /\Ac\.rb:2: listen: got "~no-such-user-here.*" \(String\), which is no valid address \(.+\)\z/
  config "an option that is misspelt", "listen 80, backlgo: 5",
         "c.rb:2: listen: unknown option :backlgo; did you mean :backlog?"
  config "an option out of range", "listen 80, backlog: 0",
         "c.rb:2: listen: backlog: got 0 (Integer), wanted an Integer of at least 1"
  config "a number for options", "listen 80, 5",
         "c.rb:2: listen: got 5 (Integer), wanted options such as backlog: value"
  config "a file in a socket's place", "File.write('s', ''); listen 'unix:s'",
         /\Ac\.rb:2: listen: Socket operation on non-socket - bind\(.*s, which is a file but no socket\)\z/
  config "a directory that is not there for a socket", "listen '/no/such/dir/x.sock'",
         "c.rb:2: listen: No such file or directory - bind(/no/such/dir/x.sock): make the directory /no/such/dir first"

  # Files

  config "a log in a directory that is not there", "stderr_path '/no/such/dir/err.log'",
         'c.rb:2: stderr_path: got "/no/such/dir/err.log" (String), wanted a file in a directory that exists, there is no ' \
         "/no/such/dir"
  config "a directory for a log", "stdout_path '/'",
         'c.rb:2: stdout_path: got "/" (String), wanted a file, this is a directory'
  config "a log that cannot be written", "stdout_path '/proc/out.log'",
         "c.rb:2: stdout_path: cannot open /proc/out.log (No such file or directory)"
  config "a number for a path", "pid 5",
         "c.rb:2: pid: got 5 (Integer), wanted a path, as a String or a Pathname"
  config "the pid file of a process that runs", "pid 'live.pid'; File.write('live.pid', Process.ppid)",
         %r{\Ac\.rb:2: pid: /.*/live\.pid names process \d+, which is running: stop it first\z}
  config "something else for a pid file", "pid 'config.ru'",
         %r{\Ac\.rb:2: pid: /.*/config\.ru is no pid file: name another one\z}
  config "a directory to work in that is not there", "working_directory '/no/such/dir'",
         'c.rb:2: working_directory: got "/no/such/dir" (String), wanted a directory to go to (No such file or directory)'
  config "a file to work in", "working_directory 'config.ru'",
         'c.rb:2: working_directory: got "config.ru" (String), wanted a directory to go to (Not a directory)'

  # Combinations

  config "a format for a logger of one's own", "log_format :json\nlogger Logger.new($stderr)",
         "c.rb:2: log_format: got :json and a logger, which has a format of its own; wanted one of them"

  # What there is not

  config "a directive that is misspelt", "worker_procesess 4",
         'c.rb:2: unknown directive "worker_procesess"; did you mean worker_processes?'
  config "a directive like none", "frobnicate true",
         'c.rb:2: unknown directive "frobnicate"'
  config "an option of timeout's that is misspelt", "timeout 20, clean_up: 5",
         "c.rb:2: timeout: unknown option :clean_up; did you mean :cleanup?"
  config "a setting that is misspelt", "set[:refork_conditon] = nil",
         "c.rb:2: unknown setting :refork_conditon; did you mean :refork_condition?"
  config "a setting of the wrong type", "set[:refork_condition] = 5",
         "c.rb:2: refork_condition: got 5 (Integer), wanted an object that responds to met?"
  config "a setting that follows from others", "set[:timeout] = 30",
         "c.rb:2: unknown setting :timeout"
  config "Unicorn's preload_app", "preload_app true",
         "c.rb:2: preload_app: remove it: the application is always loaded before the workers are forked"
  config "Unicorn's user", "user 'www', 'www'",
         "c.rb:2: user: remove it and start the server as that user, for example with User= in a systemd unit"
  config "Unicorn's before_exec", "before_exec { |server| }",
         "c.rb:2: before_exec: remove it: the server does not execute itself anew"
  config "Unicorn's after_fork", "after_fork { |server, worker| }",
         "c.rb:2: after_fork: use after_worker_fork, and after_mold_fork for what shall happen once per mold"

  # Ruby

  config "a syntax error", "worker_processes 1 +\n",
         /\Ac\.rb:[23]: syntax error.*unexpected/
  config "an error that the file raises", "raise IOError, 'no luck'",
         "c.rb:2: IOError: no luck"
  config "a constant there is not", "Metrics.connect",
         "c.rb:2: NameError: uninitialized constant Metrics"
  config "a name of Unicorn's", "Unicorn::HttpServer.class_eval { }",
         "c.rb:2: NameError: uninitialized constant Unicorn; here it is Pitchfork"
  config "a library there is not", "require 'no/such/library'",
         "c.rb:2: LoadError: cannot load such file -- no/such/library"
  config "a method nil has not", "nil.upcase",
         /\Ac\.rb:2: NoMethodError: undefined method .upcase. for nil/

  # The environment

  environment "a word for a number", { "WEB_CONCURRENCY" => "auto" },
              'environment: WEB_CONCURRENCY: got "auto", wanted an Integer of at least 1'
  environment "no worker", { "WEB_CONCURRENCY" => "0" },
              'environment: WEB_CONCURRENCY: got "0", wanted an Integer of at least 1'
  arguments "a URL for a port", [], 'environment: PORT: got "tcp://10.0.0.1:80", wanted an Integer from 0 to 65535',
            env: { "PORT" => "tcp://10.0.0.1:80" }

  # The command line

  arguments "an option there is not", %w[--nonsense], "invalid option: --nonsense"
  arguments "an option that is misspelt", %w[--confg-file c.rb], "invalid option: --confg-file; did you mean --config-file?"
  arguments "a word for a port", %w[-p http], "invalid argument: -p http, wanted a port from 0 to 65535"
  arguments "an option without its value", %w[-c], "missing argument: -c"
  arguments "a port out of range", %w[-p 70000], "invalid argument: -p 70000, wanted a port from 0 to 65535"
  arguments "no address", %w[-l nowhere],
            'options: listen: got "nowhere" (String), wanted a port, "host:port", "*:port", "[IPv6]:port", "/path.sock", ' \
            '"~/path.sock" or "unix:path.sock"'
  arguments "a configuration that is not there", %w[-c missing.rb],
            "missing.rb: configuration file cannot be read (No such file or directory)"
  arguments "a directory for a configuration", %w[-c .],
            ".: configuration file cannot be read (Is a directory)"
  arguments "an application that is not there", %w[-c c.rb missing.ru], "missing.ru: no such file"
  arguments "two applications", %w[a.ru b.ru], "wanted one application file, got a.ru b.ru"
  arguments "an application in another language", %w[app.py],
            "app.py: wanted a rackup file (.ru) or a Ruby file (.rb)"
  arguments "a library that is not there", %w[-r no/such/library], "-r no/such/library: no such library"
  arguments "-D", %w[-D], "-D is not supported: let systemd or another supervisor run it in the background"

  # The options line of the application

  options_line "an option there is not", "--nonsense", "config.ru:1: options line: invalid option: --nonsense"
  options_line "a word too many", "-w other.ru", "config.ru:1: options line: unexpected other.ru"
  options_line "a word for a port", "-p http", "config.ru:1: options line: invalid argument: -p http, wanted a port from 0 to 65535"
  options_line "a quotation that is not closed", "-o 'a", /\Aconfig\.ru:1: options line: Unmatched .*quote.*\z/i
end

# rubocop:enable Layout/LineLength
