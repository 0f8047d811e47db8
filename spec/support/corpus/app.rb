# frozen_string_literal: true

require "uri" # Rack::Lint of Rack 2 needs it, and does not say so
require_relative "../corpus"
require_relative "body"

module Corpus
  # The application that all cases are played with. It notes each call, with the environment as the server made it, and
  # each event of a body in a journal. `/response/N` returns what the case of this number says; `/unread` leaves the
  # body of the request alone; anything else reads it.
  class App
    # What an object in the environment may be asked to do.
    ABILITIES = %w[call read gets each rewind << write puts flush info error].freeze

    def initialize(journal = "journal")
      @journal = File.expand_path(journal)
      @responses = Corpus.sections.last.cases
      @echo = Rack::Lint.new(method(:echo))
    end

    def call(env)
      seen = env.transform_values { |value| describe(value) }
      env["rack.response_finished"]&.push(->(*) { note("finished") })
      number = env["PATH_INFO"].to_s[%r{\A/response/(\d+)\z}, 1] or return call_echo(env, seen)

      note("call", env: seen)
      answer = ->(inner) { respond(@responses[number.to_i]["app"], inner) }
      (env["QUERY_STRING"] == "lint" ? Rack::Lint.new(answer) : answer).call(env)
    end

    private

    def note(event, **details)
      record = Marshal.dump({ "event" => event, **details.transform_keys(&:to_s) })
      File.write(@journal, "#{[record].pack("m0")}\n", mode: "a")
    end

    def describe(value)
      case value
      when String, Integer, true, false, nil then value
      when Array then value.map { |item| describe(item) }
      else { "can" => ABILITIES.select { |ability| value.respond_to?(ability) } }
      end
    end

    def call_echo(env, seen)
      answer = (lintable?(env) ? @echo : method(:echo)).call(env)
      note("call", env: seen, body: env["corpus.body"])
      answer
    rescue StandardError => e
      note("call", env: seen, raised: e.class.name, message: e.message, eof: e.is_a?(EOFError), backtrace: e.backtrace)
      raise
    end

    # Rack 2 knows no input that cannot be rewound.
    def lintable?(env) = Rack.release >= "3" || env["rack.input"].respond_to?(:rewind)

    def echo(env)
      env["corpus.body"] = read(env["rack.input"]) unless env["PATH_INFO"] == "/unread"
      [200, { "content-type" => "text/plain" }, env["REQUEST_METHOD"] == "HEAD" ? [] : ["ok"]]
    end

    def read(input)
      body = input&.read.to_s
      return body unless input.respond_to?(:rewind)

      input.rewind
      raise "the body reads differently after rewind" unless input.read == body

      body
    end

    def respond(app, env)
      app.fetch("early_hints", []).each { |hints| env["rack.early_hints"]&.call(Body.native(hints)) }
      raise Object.const_get(app["raises"]), "raised by the case" if app.key?("raises")
      return app["returns"] if app.key?("returns")

      body = app.fetch("body", [])
      headers = app.fetch("headers", { "content-type" => "text/plain" })
      body = Body.new(body) { |event| note(event) } if body.is_a?(Hash)
      [app.fetch("status", 200), headers(headers), body.is_a?(Body) ? body : Body.native(body)]
    end

    def headers(given)
      Body.native(given).tap do |headers|
        next unless headers.is_a?(Hash) && headers["rack.hijack"].is_a?(String)

        bytes = headers["rack.hijack"]
        headers["rack.hijack"] = lambda { |io|
          io.write(bytes)
          io.close
        }
      end
    end
  end
end
