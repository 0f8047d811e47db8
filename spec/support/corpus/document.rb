# frozen_string_literal: true

require_relative "../corpus"

module Corpus
  # The corpus as a page to read: `docs/HTTP.md`.
  class Document
    INTRODUCTION = File.join(DIRECTORY, "introduction.md")
    # Longer examples are shortened to this.
    LONGEST = 110
    private_constant :INTRODUCTION, :LONGEST

    def to_s
      [File.read(INTRODUCTION).chomp, *Corpus.sections.map { |section| text(section) }].join("\n\n") << "\n"
    end

    # Bytes as they can be read: one line, of printable characters only.
    def self.readable(bytes)
      bytes.b.gsub(/(?!\r?\n.)(.{1,16}?)\1{9,}/mn) { repeated($1, $&.bytesize / $1.bytesize) }
           .gsub(/[^ -~]|\\/n) { |byte| NAMES.fetch(byte) { format("\\x%02x", byte.ord) } }
    end

    def self.repeated(bytes, times) = bytes.bytesize == 1 ? "#{bytes}{#{times}}" : "(#{bytes}){#{times}}"
    private_class_method :repeated

    # A case's request as code. What every request needs is left out where it proves nothing.
    def self.request(kase, longest = LONGEST)
      return "nothing" if kase.request.empty?

      plain = kase.key?("request") || kase.request.scan(/^Host:/in).size > 1
      text = readable(plain ? kase.request : kase.request.sub("#{HOST}\r\n", ""))
      code(text.size > longest ? "#{text[0, longest]}…" : text)
    end

    NAMES = { "\r" => "\\r", "\n" => "\\n", "\t" => "\\t", "\0" => "\\0", "\\" => "\\\\" }.freeze
    private_constant :NAMES

    # Code in a cell of a table. A backtick in it needs two around it.
    def self.code(text)
      text = text.gsub("|", "\\|")
      text.include?("`") ? "`` #{text} ``" : "`#{text}`"
    end

    private

    def text(section)
      rows = section.cases.map { |kase| "| #{[kase.name, example(kase), result(kase), kase.source].join(" | ")} |" }
      ["## #{section.title}", section.introduction.strip,
       ["| rule | #{section.name == "response" ? "returned by the application" : "sent"} | result | source |",
        "| --- | --- | --- | --- |", *rows].join("\n")].join("\n\n")
    end

    def code(text) = self.class.code(text)

    def readable(bytes) = self.class.readable(bytes)

    def shortened(text) = text.size > LONGEST ? "#{text[0, LONGEST]}…" : text

    def example(kase) = kase.response? ? returned(kase) : self.class.request(kase)

    def returned(kase)
      request = [kase["method"], kase["version"]].compact
      answer = describe(kase["app"])
      [("to #{request.join(" ")}:" if request.any?), code(shortened(answer))].compact.join(" ")
    end

    def describe(app)
      return "raise #{app["raises"]}" if app.key?("raises")
      return literal(app["returns"]) if app.key?("returns")

      hints = app.fetch("early_hints", []).map { |hint| "early hints #{literal(hint)}; " }.join
      parts = [app.fetch("status", 200), app.fetch("headers", {}), app.fetch("body", [])]
      hints + parts.map { |part| literal(part) }.join(", ")
    end

    def literal(data)
      case data
      when String then "\"#{readable(Corpus.bytes(data))}\""
      when Array then "[#{data.map { |item| literal(item) }.join(", ")}]"
      when Hash
        return literal(data["repeat"] * data["times"]) if data.key?("repeat")

        "{#{data.map { |key, value| "#{readable(Corpus.bytes(key))}: #{literal(value)}" }.join(", ")}}"
      else data.inspect
      end
    end

    def result(kase)
      kase.config.empty? ? outcome(kase) : "#{outcome(kase)}, with #{code(kase.config)}"
    end

    def outcome(kase)
      return "no answer" if kase["response"] == ""
      return wire(kase) if kase.response?

      facts = kase.data.fetch("env", {}).map { |key, value| fact(key, value) }
      facts << "body #{bytes(kase["body"])}" unless kase["body"].to_s.empty?
      [kase.status, *kase["interim"]&.map { |status| "after #{status}" }, *facts].join(", ")
    end

    def fact(key, value)
      case value
      when nil then "no #{code(key)}"
      when Hash then "#{code(key)} can #{value["can"].map { |name| code(name) }.join(", ")}"
      else code("#{key} #{value.is_a?(String) ? literal(value) : value.inspect}")
      end
    end

    def wire(kase)
      return bytes(kase["response"]) if kase.key?("response")

      lines = kase.data.fetch("lines", []).map { |line| bytes(line) }
      absent = kase.data.fetch("no_lines", []).map { |line| "no #{bytes(line)}" }
      interim = kase["interim"]&.map { |status| "after #{status}" }
      [kase.status, *interim, *lines, *absent, *received(kase), *("logged" if kase["logged"])].join(", ")
    end

    def received(kase)
      return unless kase.key?("received")

      kase["received"] == "" ? "no content" : "content #{bytes(kase["received"])}"
    end

    def bytes(value) = code(shortened(readable(Corpus.bytes(value))))
  end
end
