# frozen_string_literal: true

require_relative "error_report"

module PitchforkRs
  module Log
    # Makes one JSON object, in a line of its own, of each line that is logged. What the text says as `name=value` is
    # there as typed fields too, so that the two can never differ:
    #
    #   {"time":"2026-05-04T03:02:01.123456+00:00","level":"INFO","pid":12,"progname":"[Pitchfork]",
    #    "process":{"role":"worker","worker":0,"generation":1},
    #    "message":"worker=0 gen=1 pid=12 ready","facts":{"worker":0,"generation":1,"pid":12}}
    #
    # `pid` and `process` tell who writes, `facts` what the line is about. An exception is under `error`, with its
    # class, message and backtrace.
    # @api private
    class JsonFormatter
      TIME = "%Y-%m-%dT%H:%M:%S.%6N%:z"
      NUMBERS = {
        "worker" => /\bworker=(\d+)/, "generation" => /\bgen=(\d+)/, "pid" => /\bpid=(\d+)/, "fd" => /\bfd=(\d+)/,
        "status" => /\bstatus=(\d+)/, "requests" => /\bprocessed (\d+) requests\b/,
        "exit_status" => /#<Process::Status: pid \d+ exit (\d+)/,
        "signal" => /#<Process::Status: pid \d+ .*\(signal (\d+)\)/
      }.freeze
      WORDS = { "role" => /\b(mold|service|reactor|monitor) (?:gen|pid)=/, "addr" => /\baddr=(\S+)/ }.freeze
      private_constant :TIME, :NUMBERS, :WORDS

      def initialize
        # Here, because only those who want JSON shall have it in memory.
        require "json"
      end

      # @param severity [String]
      # @param time [Time]
      # @param progname [String, nil]
      # @param message [Object] a String, an {ErrorReport}, an Exception, or anything that can be inspected
      # @return [String] a JSON object and a line end
      def call(severity, time, progname, message)
        text = text(message)
        record = { time: time.strftime(TIME), level: severity, pid: Process.pid, progname: progname && utf8(progname),
                   process: process, message: text, facts: facts(text), error: error(message) }.compact
        "#{JSON.generate(record)}\n"
      end

      private

      def process
        process = Log.process
        return { role: "monitor" } unless process

        role = %w[mold service].find { |name| process.public_send(:"#{name}?") } || "worker"
        { role: role, worker: process.nr, generation: process.generation }.compact
      end

      def text(message)
        case message
        when String then utf8(message)
        when ErrorReport then utf8(message.headline)
        when Exception then utf8("#{message.message} (#{message.class})")
        else utf8(message.inspect)
        end
      end

      def facts(text)
        found = WORDS.transform_values { |pattern| text[pattern, 1] }
                     .merge(NUMBERS.transform_values { |pattern| text[pattern, 1]&.to_i }).compact
        found unless found.empty?
      end

      def error(message)
        exception = message.is_a?(ErrorReport) ? message.exception : message
        return unless exception.is_a?(Exception)

        { class: exception.class.to_s, message: utf8(exception.message.to_s),
          backtrace: exception.backtrace.to_a.map { |line| utf8(line) } }
      end

      # JSON is UTF-8. Bytes of no known meaning, which are what requests are made of, are taken for that.
      def utf8(text)
        text = text.to_s
        if [Encoding::BINARY, Encoding::US_ASCII, Encoding::UTF_8].include?(text.encoding)
          text.dup.force_encoding(Encoding::UTF_8).scrub
        else
          text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
        end
      end
    end
  end
end
