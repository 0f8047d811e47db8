# frozen_string_literal: true

module Corpus
  # What came of playing a case: the bytes of the answer, what the application noted, and what was logged.
  class Outcome
    Message = Struct.new(:status, :lines, :content)
    DATE = /\A(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\z/

    attr_reader :bytes, :events, :log

    # @param way [String] how it was played
    def initialize(way, bytes, events, log)
      @way = way
      @bytes = bytes
      @events = events
      @log = log
    end

    # The bytes, with what changes each second replaced.
    def timeless = bytes.gsub(/^Date: [^\r]*/n, "Date: now")

    def interim = messages[0...-1].map(&:status)

    def final = messages.last

    def status = final&.status

    def content = final&.content

    # The content without its chunked coding, if it has that.
    def decoded = fields("transfer-encoding").empty? ? content : dechunked

    # The values of a field of the final response.
    def fields(name)
      final.lines.filter_map { |line| line[/\A#{Regexp.escape(name)}: (.*)\z/in, 1] }
    end

    def calls = events.select { |event| event["event"] == "call" }

    def call = calls.first

    def count(event) = events.count { |other| other["event"] == event }

    def to_s = "#{@way}: #{bytes.empty? ? "nothing" : bytes[0, 600].inspect}"

    private

    def messages
      @messages ||= [].tap do |found|
        rest = bytes
        loop do
          head, separator, rest = rest.partition("\r\n\r\n")
          break if separator.empty?

          status, *lines = head.split("\r\n", -1)
          number = status[%r{\AHTTP/1\.1 (\d{3}) }n, 1].to_i
          found << Message.new(number, lines, rest)
          break unless (100..199).cover?(number) && number != 101
        end
      end
    end

    def dechunked
      rest = content.dup
      decoded = +""
      while (size = rest.slice!(/\A\h+\r\n/n)&.hex)&.positive?
        decoded << rest.slice!(0, size)
        rest.delete_prefix!("\r\n") || (return nil)
      end
      decoded if size&.zero? && rest == "\r\n"
    end
  end
end
