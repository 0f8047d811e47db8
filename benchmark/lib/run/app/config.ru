# frozen_string_literal: true

# The application that every server runs: as little Ruby as there can be, so that it is the server that is measured.

require "json"
require "rack"

PIECE = ("0123456789abcdef" * 64).freeze
LARGE = PIECE * 100
FILE = ENV.fetch("BENCHMARK_FILE")
OBJECTS = {} # rubocop:disable Style/MutableConstant -- filled anew by each request for them
TYPES = %i[TOTAL FREE T_STRING T_HASH T_ARRAY T_DATA T_OBJECT T_IMEMO].freeze

# A body that is a file; servers that know `to_path` never call `each`.
class Download
  def to_path = FILE

  def each(&)
    File.foreach(FILE, nil, PIECE.bytesize, &)
  end
end

# Processor time, not time: who is kept waiting for the processor has not done any work yet.
def work(microseconds)
  clock = Process::CLOCK_PROCESS_CPUTIME_ID
  finish = Process.clock_gettime(clock, :microsecond) + microseconds
  nil while Process.clock_gettime(clock, :microsecond) < finish
end

# In the spelling of the Rack that is there: with another one, middleware that a server adds overlooks the length.
def fields(length)
  { Rack::CONTENT_TYPE => "text/plain", Rack::CONTENT_LENGTH => length.to_s }
end

def text(*pieces)
  [200, fields(pieces.sum(&:bytesize)), pieces]
end

# How many objects of each type there are. What is never collected cannot be missed. Ruby leaves out types that nothing
# is of; this answer always has the same lines, and so costs each process the same objects.
def objects
  GC.disable
  ObjectSpace.count_objects(OBJECTS)
  TYPES.map { |type| "#{type} #{OBJECTS.fetch(type, 0)}" }.join("\n")
end

run(lambda do |env|
  case env["PATH_INFO"]
  when "/hello" then text("hello\n")
  when "/headers" then text("#{env["HTTP_X_FIELD_15"]} #{env["HTTP_COOKIE"].bytesize}\n")
  when "/json" then text("#{JSON.parse(env["rack.input"].read).sum { |entry| entry["amount"] }}\n")
  when "/large" then text(LARGE)
  when "/pieces" then text(*[PIECE] * 100)
  when "/file" then [200, fields(LARGE.bytesize), Download.new]
  when "/sleep" then sleep(0.005) && text("hello\n")
  when "/objects" then text(objects)
  when %r{\A/busy/(\d+)\z} then work(Integer($1)) || text("hello\n")
  else [404, fields(0), []]
  end
end)
