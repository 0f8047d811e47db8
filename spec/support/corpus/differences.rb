# frozen_string_literal: true

require "socket"
require "timeout"
require_relative "check"
require_relative "document"

module Corpus
  # Plays the requests of the corpus against several servers, the first being this one, and describes where the others
  # do otherwise.
  class Differences
    # How long a server may say nothing before it is taken to wait for more, and how long all may take, in seconds.
    SILENCE = 0.7
    LIMIT = 240

    WHY = {
      "request_line" => "A target or version that two readers take apart differently lets a request past a filter in " \
                        "front. Line ends that only one of them accepts move the border between two messages.",
      "header_fields" => "Fields become keys in which `-` and `_` are the same, and a list when they are repeated. A " \
                         "second spelling lets a client set what only a proxy should; a control byte lets it write " \
                         "lines into logs and other requests.",
      "framing" => "Each of these is a place where two readers can disagree about the end of a body, which is what " \
                   "request smuggling is made of. A body that is accepted here and refused there does no harm by " \
                   "itself; one whose end is seen elsewhere does.",
      "env" => "The same request means different things to the same application on two servers. Mostly a matter of " \
               "what the Rack specification leaves open."
    }.freeze
    private_constant :WHY

    # What one server did with one case.
    Result = Struct.new(:status, :called, :env, :body) do
      def to_s
        return status.to_s if called && status == 200

        text = { :waits => "waits for more", nil => "closes" }.fetch(status, status.to_s)
        called ? "#{text}, called" : text
      end
    end

    # @param servers [Array<#name, #version, #port, #path>]
    def initialize(servers)
      @servers = servers
      @found = {}
      @played = 0
    end

    def play
      deadline = now + LIMIT
      requests.each do |kase|
        break if now > deadline

        @played += 1
        ours, *others = @servers.map { |server| result(server, kase) }
        texts = others.map { |other| difference(kase, ours, other) }
        (@found[kase.section] ||= []) << [kase, ours, texts] if texts.any?
      end
    end

    def summary = "#{@played} requests, #{@found.values.sum(&:size)} differences"

    def to_s
      names = @servers.map { |server| "#{server.name} #{server.version}" }
      <<~MARKDOWN
        # Where HTTP servers differ

        Made by `benchmark/http-differences`, which plays the requests of `spec/corpus` against #{names[0..-2].join(", ")}
        and #{names.last}, with Ruby #{RUBY_VERSION} and Rack #{Rack.release}, each with one worker or thread and the same
        application. Of #{@played} requests those are listed whose status differs, or whether the application was called,
        or what it was given. "Waits for more": there was no answer within #{SILENCE} seconds. "Called": the application was called, and yet did not
        answer 200; it stands behind `Rack::Lint`, which refuses an environment that breaks the specification. "As here":
        no difference.

        A difference is no verdict. Most servers that accept what is refused here do so for clients that once needed it;
        [HTTP.md](HTTP.md) says why this one does not.

        #{@found.map { |section, rows| table(section, rows) }.join("\n\n")}
      MARKDOWN
    end

    private

    # Those that can be sent at once and answered.
    def requests
      Corpus.cases.reject { |kase| kase.response? || kase["client"] || kase.key?("config") }.select(&:applies?)
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def table(section, rows)
      heads = ["rule", "sent", *@servers.map(&:name), "source"]
      lines = rows.map do |kase, ours, texts|
        theirs = texts.map { |text| text || "as here" }
        "| #{[kase.name, Document.request(kase, 90), ours, *theirs, kase.source].join(" | ")} |"
      end
      ["## #{section.title}", WHY.fetch(section.name), "",
       "| #{heads.join(" | ")} |", "| #{heads.map { "---" }.join(" | ")} |", *lines].join("\n").sub("\n", "\n\n")
    end

    # In words; nil if there is none.
    def difference(kase, ours, other)
      return other.to_s if [ours.status, ours.called] != [other.status, other.called]

      facts = keys(kase, ours, other).map { |key| "#{key} #{short(other.env[key])}" }
      facts << "body #{short(other.body)}" if other.body != ours.body
      facts.map { |fact| Document.code(fact) }.join(", ") unless facts.empty?
    end

    # Of the environment, those that differ among those that the case is about.
    def keys(kase, *results)
      kase.data.fetch("env", {}).filter_map do |key, wanted|
        key if results.map { |result| comparable(result, key, wanted) }.uniq.size > 1
      end
    end

    def comparable(result, key, wanted)
      value = (result.env || {})[key]
      return value["can"] & wanted["can"] if value.is_a?(Hash) && wanted.is_a?(Hash)

      value.is_a?(String) ? value.b : value
    end

    def short(value)
      return "absent" if value.nil?

      text = value.is_a?(String) ? "\"#{Document.readable(value)}\"" : value.inspect
      text.size > 60 ? "#{text[0, 60]}…" : text
    end

    def result(server, kase)
      mark = journal(server).bytesize
      answer = exchange(server, kase.request)
      called = journal(server)[mark..].lines.map { |line| Marshal.load(line.unpack1("m")) } # rubocop:disable Security/MarshalLoad
      called = called.find { |event| event["event"] == "call" }
      Result.new(answer, !called.nil?, called&.fetch("env"), called && called["body"])
    end

    def journal(server) = File.exist?(server.path("journal")) ? File.binread(server.path("journal")) : "".b

    # The status of the first final response; `:waits` if nothing came, nil if the connection was closed without one.
    def exchange(server, request)
      socket = TCPSocket.new("127.0.0.1", server.port)
      begin
        socket.write(request)
      rescue Errno::EPIPE, Errno::ECONNRESET
        nil
      end
      status(socket)
    ensure
      socket&.close
    end

    def status(socket)
      received = +"".b
      loop do
        received.slice!(%r{\AHTTP/1\.1 1\d\d .*?\r\n\r\n}mn)
        found = received[%r{\AHTTP/1\.\d (\d{3})}n, 1]
        return found.to_i if found
        return :waits unless socket.wait_readable(SILENCE)

        received << socket.readpartial(65_536)
      end
    rescue EOFError, Errno::ECONNRESET
      nil
    end
  end
end
