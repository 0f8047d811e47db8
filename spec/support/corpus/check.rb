# frozen_string_literal: true

require_relative "outcome"

module Corpus
  # Compares what a case expects with what came of it:
  #
  # - `status` of the final response; 200 if absent, or that which the application returns. A request with any but 200
  #   must not reach the application, and is answered by nothing but that status;
  # - `app_called`, if it is not so;
  # - `env`: keys and their values, nil for an absent key, `{can: [METHOD, …]}` for an object;
  # - `body`: what the application reads of the request's;
  # - `raised`: the class of what reading it raises;
  # - `response`: all the bytes, with `Date: now`; or `lines` that stand in its head, `no_lines` whose beginning no line
  #   has, `received`, its content as it is on the wire;
  # - `interim`: the statuses of interim responses, before the final one;
  # - `iterated`, `closed`: how often the response's body was;
  # - `logged`, `not_logged`: a part of the log.
  class Check
    def initialize(kase, outcome)
      @case = kase
      @outcome = outcome
    end

    # What is not as it should be.
    def problems
      return whole_response if @case.key?("response")

      [*final_response, *call, *counts, *log].compact
    end

    private

    def differs(what, expected, actual)
      "#{what}: wanted #{expected.inspect}, got #{actual.inspect}" unless expected == actual
    end

    def whole_response
      expected = Corpus.bytes(@case["response"])
      [differs("response", expected, @outcome.timeless), *call, *counts, *log].compact
    end

    def final_response
      status = differs("status", @case.status, @outcome.status)
      return [status, lint_complaint] if status

      [interim, *head, content, echo, *refusal, *well_framed]
    end

    def lint_complaint
      "the application raised #{@outcome.call["message"]}" if @outcome.call&.key?("raised")
    end

    def interim
      differs("interim responses", @case["interim"], @outcome.interim) if @case.key?("interim")
    end

    def head
      lines = @outcome.final.lines
      missing = @case.data.fetch("lines", []).reject { |line| lines.include?(Corpus.bytes(line)) }
      forbidden = @case.data.fetch("no_lines", []).flat_map do |start|
        lines.select { |line| line.downcase.start_with?(Corpus.bytes(start).downcase) }
      end
      [*missing.map { |line| "no line #{line.inspect}" }, *forbidden.map { |line| "line #{line.inspect}" }]
    end

    def content
      differs("received", Corpus.bytes(@case["received"]), @outcome.content) if @case.key?("received")
    end

    # A request that was served has all of the application's answer.
    def echo
      return if @case.response? || !@case.app_called?

      whole = @outcome.call&.dig("env", "REQUEST_METHOD") == "HEAD" ? "" : "ok"
      differs("content", whole, @outcome.decoded)
    end

    # A refusal has no content, and is worth one line at debug level.
    def refusal
      return [] if @case.app_called? || @case.response?

      noted = @outcome.log.scan(/DEBUG -- .*: answered (\d+) to /).flatten
      [differs("Content-Length", ["0"], @outcome.fields("content-length")), differs("content", "", @outcome.content),
       differs("lines in the log", [@case.status.to_s], noted)]
    end

    # Holds for every response.
    def well_framed
      length, coding = %w[content-length transfer-encoding].map { |name| @outcome.fields(name) }
      date = @outcome.fields("date")
      connection = @outcome.fields("connection")
      ["length and coding: #{length + coding}",
       "dates: #{date}",
       "Connection: #{connection}"].zip(
         [length.size + coding.size > 1,
          date.size != 1 || !date.first.match?(Outcome::DATE),
          @case.status != 101 && connection != ["close"]]
       ).filter_map { |text, wrong| text if wrong }
    end

    def call
      called = differs("calls of the application", @case.app_called? ? 1 : 0, @outcome.calls.size)
      return [called] if called || @outcome.calls.empty?

      [*env, body, raised, differs("callbacks run", 1, @outcome.count("finished"))]
    end

    def env
      env = @outcome.call["env"]
      wrong = @case.data.fetch("env", {}).filter_map do |key, expected|
        expected = Corpus.bytes(expected) if expected.is_a?(String)
        differs("env[#{key.inspect}]", expected, comparable(env[key], expected))
      end
      wrong + env.filter_map { |key, value| "encoding of env[#{key.inspect}]" unless well_encoded?(value) }
    end

    def comparable(value, expected)
      return { "can" => value["can"] & expected["can"] } if value.is_a?(Hash) && expected.is_a?(Hash)

      value.is_a?(String) ? value.b : value
    end

    # Text is UTF-8, anything else binary.
    def well_encoded?(value)
      !value.is_a?(String) || value.encoding == (value.ascii_only? ? Encoding::UTF_8 : Encoding::BINARY)
    end

    def body
      differs("body", Corpus.bytes(@case["body"]), @outcome.call["body"]&.b) if @case.key?("body")
    end

    def raised
      return unless @case.key?("raised")

      wanted = [@case["raised"], true, []]
      differs("raised", wanted, @outcome.call.values_at("raised", "eof", "backtrace"))
    end

    # A body is closed once, whatever happens.
    def counts
      return [] unless @case.response?

      closed = @case.data.fetch("closed") { @case["app"]["body"].is_a?(Hash) ? 1 : 0 }
      iterated = @case.data.fetch("iterated") { @outcome.count("each") }
      [differs("closed", closed, @outcome.count("close")), differs("iterated", iterated, @outcome.count("each"))]
    end

    def log
      wanted, unwanted = @case.data.values_at("logged", "not_logged")
      [("not logged: #{wanted}" unless !wanted || @outcome.log.include?(wanted)),
       ("logged: #{@outcome.log}" if unwanted && @outcome.log.include?(unwanted))]
    end
  end
end
