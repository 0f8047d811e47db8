# frozen_string_literal: true

# An application in a process without a server, which does what its standard input says, a word and numbers a line:
#
#   call 100    calls the application so often; after `fork`, with a number for each child, the children do
#   fork 4      prepares the heap as a mold of this server does, and forks so many children; wants `bare_heap.rb`
#
# When it is done it prints a line for each process that has called the application, with its pid and the bytes of its
# machine code, and then the line "done".

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
built = Rack::Builder.parse_file(ENV.fetch("COW_APP"))
app = built.is_a?(Array) ? built.first : built
children = []
$stdin.each_line do |line|
  word, *numbers = line.split
  case word
  when "fork"
    Heap.prepare
    children = Array.new(Integer(numbers.first)) { Child.new(app) }
  when "call"
    if children.empty?
      Calls.call(app, Integer(numbers.first))
      puts Calls.report
    else # all at once
      children.zip(numbers) { |child, number| child.order(number) }
      puts children.map(&:report)
    end
  end
  puts "done"
end
