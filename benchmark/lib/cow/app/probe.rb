# frozen_string_literal: true

module Cow
  # Says which process has answered, and, if it is asked to linger, how much machine code YJIT has made in it.
  class Probe
    PROCESS = "x-benchmark-process"
    CODE = "x-benchmark-code"
    LINGER = "linger"
    # Keeps a worker busy, so that requests sent at the same time reach the others. In seconds.
    PAUSE = 0.01

    # @return [Integer, nil] bytes of machine code in this process; nil without YJIT
    def self.code_bytes
      return unless defined?(RubyVM::YJIT.enabled?) && RubyVM::YJIT.enabled?

      statistics = RubyVM::YJIT.runtime_stats
      statistics && statistics[:inline_code_size]&.+(statistics[:outlined_code_size])
    end

    def initialize(app)
      @app = app
    end

    def call(env)
      status, fields, body = @app.call(env)
      fields = { **fields, PROCESS => Process.pid.to_s }
      if env["QUERY_STRING"] == LINGER
        sleep PAUSE
        fields[CODE] = self.class.code_bytes.to_s
      end
      [status, fields, body]
    end
  end
end
