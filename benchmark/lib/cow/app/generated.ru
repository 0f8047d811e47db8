# frozen_string_literal: true

# An application of 4,000 methods and as many constants, all of which each request uses: after some dozens of requests
# YJIT has compiled everything, and everything is warm in the interpreter's caches.

# The source of the classes.
module Parts
  COUNT = 100
  # What methods do: arithmetic and a branch, state, strings, lists, blocks, and calls of others.
  KINDS = [
    "n.odd? ? n + LIMIT_%<number>d : n - @offset",
    "@seen += LIMIT_%<number>d & n",
    "\"part \#{n} of \#{LIMIT_%<number>d}\".size",
    "[n, LIMIT_%<number>d, @offset].max",
    "LIST.sum { |each| each + (n & LIMIT_%<number>d) }",
    "case n & 3 when 0 then LIMIT_%<number>d when 1 then step_0(n) else Part%<other>d::LIMIT_%<number>d end",
    "TABLE.fetch(n & 7) + Part%<other>d::LIMIT_%<number>d",
    "step_0(n) + (n > LIMIT_%<number>d ? step_1(n) : step_2(n))"
  ].freeze
  METHODS = 5 * KINDS.size

  def self.source(part)
    <<~RUBY
      class Part#{part}
        LIST = [1, 2, #{part}].freeze
        TABLE = (0..7).to_h { |key| [key, key * #{part}] }.freeze
        #{constants(part)}
        def initialize
          @offset = #{part}
          @seen = 0
        end
        #{methods(part)}
        def run(n)
          #{Array.new(METHODS) { |number| "step_#{number}(n)" }.join(" + ")}
        end
      end
    RUBY
  end

  def self.constants(part)
    Array.new(METHODS) { |number| "LIMIT_#{number} = #{(part + number) % 64}" }.join("\n")
  end

  def self.methods(part)
    Array.new(METHODS) do |number|
      body = format(KINDS[number % KINDS.size], number: number, other: (part + 1) % COUNT)
      "def step_#{number}(n)\n#{body}\nend"
    end.join("\n")
  end
end

parts = Array.new(Parts::COUNT) do |part|
  eval(Parts.source(part), TOPLEVEL_BINDING, "part_#{part}.rb") # rubocop:disable Security/Eval
  Object.const_get("Part#{part}").new
end
requests = 0

run(lambda do |_env|
  requests += 1
  [200, { "content-type" => "text/plain" }, ["#{parts.sum { |part| part.run(requests) }}\n"]]
end)
