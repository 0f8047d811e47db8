# frozen_string_literal: true

require "rack"
require "yaml"

# What the server does with each kind of input, as data: `spec/corpus/*.yml`, a section of the HTTP layer each.
#
# A case of a request has `request`, the bytes sent, or what they are made of: `line` (`GET / HTTP/1.1` if absent), a
# `Host` field unless `host` is false, `fields`, `head_size` (a last field is added that fills the head up to so many
# bytes), and `content`. A case of a response has `app`, what the application returns, and perhaps `method`, `version`
# and `fields` of the request for it. Strings are Latin-1: "\xff" is one byte. In place of a string there may be a list
# of pieces, and a piece may be `{repeat: STRING, times: NUMBER}`; in place of a field there may be `{field: STRING,
# times: NUMBER}`.
#
# `config` is the configuration that a case holds for, if it is not the default.
#
# What is expected is listed in {Corpus::Check}. Among other requests on one connection a case has the same answer; it
# is the last one there if it was refused, came with HTTP/1.0, or has `persists: false`. `next` is the status of the
# answer to what its own bytes hold behind it.
module Corpus
  DIRECTORY = File.expand_path("../corpus", __dir__)
  HOST = "Host: example.org"

  module_function

  # All sections, in the order of a message.
  def sections
    @sections ||= %w[request_line header_fields framing env response].map { |name| Section.new(name) }
  end

  def cases = sections.flat_map(&:cases)

  # The rows that have to be proven: of each section the input of each, and the spec that proves it if it is not a case.
  def rows = YAML.load_file(File.join(DIRECTORY, "rows.yml"))

  # The bytes that a string, or a list of pieces, stands for.
  def bytes(value)
    case value
    when String then value.encode(Encoding::ISO_8859_1).b
    when Array then value.map { |piece| bytes(piece) }.join.b
    when Hash then bytes(value.fetch("repeat")) * value.fetch("times")
    else raise ArgumentError, "no bytes: #{value.inspect}"
    end
  end

  # One file.
  class Section
    attr_reader :name, :title, :introduction, :cases

    def initialize(name)
      data = YAML.safe_load(File.read(File.join(DIRECTORY, "#{name}.yml")), aliases: true)
      @name = name
      @title, @introduction = data.values_at("title", "introduction")
      @cases = data.fetch("cases").map.with_index { |item, index| Case.new(self, index, item) }
    end
  end

  # One input and what becomes of it.
  class Case
    attr_reader :section, :index, :data

    def initialize(section, index, data)
      @section = section
      @index = index
      @data = data
    end

    def name = data.fetch("name")

    def row = data.fetch("row")

    def source = data.fetch("source")

    def [](key) = data[key]

    def key?(key) = data.key?(key)

    def response? = section.name == "response"

    # Whether it holds for the Rack that is there.
    def applies? = !key?("rack") || Gem::Requirement.new(data["rack"]).satisfied_by?(Gem::Version.new(Rack.release))

    def config = data.fetch("config", "")

    # What is sent at once: a client that waits for `100 Continue` keeps its content back.
    def request
      return Corpus.bytes(data["request"]) if key?("request")

      waits? ? head : head + content
    end

    def content = Corpus.bytes(data.fetch("content", ""))

    def linted? = response? && data.fetch("lint", true)

    def waits? = data["client"] == "waits for 100"

    # Of a response: a request for it that goes through Rack::Lint.
    def linted_request = head(query: "?lint")

    # Whether the application is called.
    def app_called? = data.fetch("app_called") { response? || status == 200 }

    # Whether the connection goes on behind it.
    def persists? = data.fetch("persists") { app_called? && !request.match?(%r{\A\S+ \S+ HTTP/1\.0\r}n) }

    # Whether it can stand among other requests: a client that leaves, or waits, has nothing to say behind it.
    def among? = !key?("client")

    def status = data.fetch("status") { response? ? data["app"].fetch("status", 200) : 200 }

    private

    def head(query: "")
      lines = [line(query), *(HOST if data.fetch("host", true)), *fields]
      head = "#{lines.join("\r\n")}\r\n\r\n"
      return head unless key?("head_size")

      missing = data["head_size"] - head.bytesize - "X-Fill: \r\n".bytesize
      "#{head.delete_suffix("\r\n")}X-Fill: #{"a" * missing}\r\n\r\n"
    end

    def line(query)
      return Corpus.bytes(data.fetch("line", "GET / HTTP/1.1")) unless response?

      "#{data.fetch("method", "GET")} /response/#{index}#{query} #{data.fetch("version", "HTTP/1.1")}"
    end

    def fields
      data.fetch("fields", []).flat_map do |field|
        repeated = field.is_a?(Hash) && field.key?("field")
        repeated ? [Corpus.bytes(field["field"])] * field["times"] : [Corpus.bytes(field)]
      end
    end
  end
end
