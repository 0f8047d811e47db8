# frozen_string_literal: true

require "tempfile"
require_relative "../corpus"

module Corpus
  # A response body that a case describes. It responds to just those of `each`, `to_ary`, `to_path` and `call` that the
  # case has, and always to `close`.
  class Body
    # The same data with the strings as bytes.
    def self.native(data)
      case data
      when String then Corpus.bytes(data)
      when Array then data.map { |item| native(item) }
      when Hash then data.key?("repeat") ? Corpus.bytes(data) : data.to_h { |key, value| [native(key), native(value)] }
      else data
      end
    end

    def initialize(data, &note)
      @data = self.class.native(data)
      @note = note
      (data.keys & %w[each to_ary to_path call]).each { |name| define_singleton_method(name, method(:"do_#{name}")) }
    end

    def close = @note.call("close")

    private

    def do_each(&)
      @note.call("each")
      @data["each"].each(&)
      raise @data["raises"] if @data.key?("raises")
    end

    def do_to_ary
      @note.call("to_ary")
      @data["to_ary"]
    end

    # The data is the file's content, `nil`, or `missing` for a file that is not there.
    def do_to_path
      case @data["to_path"]
      when nil then nil
      when "missing" then "/nonexistent/file"
      else
        @file = Tempfile.new("body", binmode: true).tap { |file| file.write(@data["to_path"]) && file.flush }
        @file.path
      end
    end

    def do_call(stream)
      @data["call"].each do |step|
        step.is_a?(Hash) ? step.each { |name, argument| stream.public_send(name, argument) } : stream.public_send(step)
      end
      raise @data["raises"] if @data.key?("raises")
    end
  end
end
