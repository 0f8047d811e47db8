# frozen_string_literal: true

# An application in a process without a server, which does what its standard input says, one word and number a line:
#
#   call 100    calls the application so often; after `fork`, each of the children does
#   fork 4      prepares the heap as a mold of this server does, and forks so many children
#
# When it is done it prints a line for each process that has called the application, with its pid and the bytes of its
# machine code, and then the line "done".

begin
  require "fiddle"
rescue LoadError
  nil # then the C heap is left as it is
end
require "rack"
require "stringio"
require_relative "app/probe"

# The least that an environment has to have.
module Calls
  module_function

  def call(app, times)
    times.times do
      _status, _fields, body = app.call(env)
      body.each(&:bytesize)
      body.close if body.respond_to?(:close)
    end
  end

  def env
    { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/", "QUERY_STRING" => "",
      "SERVER_NAME" => "localhost", "SERVER_PORT" => "80", "SERVER_PROTOCOL" => "HTTP/1.1", "HTTP_HOST" => "localhost",
      "REMOTE_ADDR" => "127.0.0.1", "rack.url_scheme" => "http", "rack.input" => StringIO.new,
      "rack.errors" => $stderr }
  end

  def report = "#{Process.pid} #{Cow::Probe.code_bytes}"
end

# What a mold does before it forks, in Ruby: otherwise the first collections of the children would write into all that
# they share, and the comparison would be with an easy opponent.
module Heap
  module_function

  # Here, not when it is needed: before Ruby 3.2 a new constant makes all code look up its constants anew, and write
  # what it has found into pages that were shared.
  def functions
    return unless defined?(Fiddle)

    pointer = Fiddle::TYPE_VOIDP
    size = Fiddle::TYPE_SIZE_T
    [function("malloc_trim", [size], Fiddle::TYPE_INT), function("malloc", [size], pointer),
     function("free", [pointer], Fiddle::TYPE_VOID)]
  rescue Fiddle::DLError
    nil # a C library that is not glibc
  end

  def function(name, arguments, result)
    Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, result)
  end

  TRIM, ALLOCATE, FREE = *functions

  def prepare
    4.times { GC.start }
    Process.warmup if Process.respond_to?(:warmup)
    tidy if FREE
  end

  # The C heap, so that glibc does not sort its free chunks in each child.
  def tidy
    TRIM.call(0)
    256.times { FREE.call(ALLOCATE.call(96 * 1024)) }
  end
end

# A forked process that calls the application when it is told to.
class Child
  def initialize(app)
    commands, @commands = IO.pipe
    @reports, reports = IO.pipe
    reports.sync = @commands.sync = true
    fork do
      [@commands, @reports].each(&:close)
      commands.each_line do |times|
        Calls.call(app, Integer(times))
        reports.puts(Calls.report)
      end
    end
    [commands, reports].each(&:close)
  end

  def order(times)
    @commands.puts(times)
  end

  def report = @reports.gets or raise "a child has ended"
end

$stdout.sync = true
built = Rack::Builder.parse_file(File.expand_path("app/config.ru", __dir__))
app = built.is_a?(Array) ? built.first : built
children = []
$stdin.each_line do |line|
  word, number = line.split
  case word
  when "fork"
    Heap.prepare
    children = Array.new(Integer(number)) { Child.new(app) }
  when "call"
    if children.empty?
      Calls.call(app, Integer(number))
      puts Calls.report
    else # all at once
      children.each { |child| child.order(number) }
      puts children.map(&:report)
    end
  end
  puts "done"
end
