# frozen_string_literal: true

require_relative "outcome"

module Corpus
  # What came of a case that was played among other requests on one connection. Its answer has to be the one that it has
  # alone, and what follows depends on it: a request that was refused is the last one on its connection, and nothing
  # behind it may ever be taken for a request.
  class Among
    # @param has_before [Boolean] whether a request for `/before` came first
    # @param has_behind [Boolean] whether one for `/behind` came last
    def initialize(outcome, has_before, has_behind)
      @outcome = outcome
      @has_before = has_before
      @has_behind = has_behind
    end

    # @param alone [Outcome] the same case on a connection of its own
    # @return [String, nil] what is wrong
    def problem(kase, alone)
      goes_on = kase.persists?
      wanted = [("ok" if @has_before), plain(alone.bytes), *follow_up(kase, goes_on)].compact
      found = [*(take_neighbour if @has_before), *split(rest, plain(alone.bytes))]
      problems = []
      problems << "wanted #{brief(wanted)}\ngot    #{brief(found)}" if wanted != found
      calls = count("/behind")
      problems << "/behind was called #{calls} times" if calls != (goes_on && @has_behind && !kase["next"] ? 1 : 0)
      "#{@outcome}\n#{problems.join("\n")}" if problems.any?
    end

    private

    def brief(parts) = parts.map { |part| part.is_a?(String) ? part[0, 300] : part }.inspect

    # Which status follows.
    def follow_up(kase, goes_on)
      return [] unless goes_on

      kase["next"] ? [kase["next"]] : [(200 if @has_behind)]
    end

    def rest = @rest ||= plain(@outcome.bytes)

    # The answer to the request before it, which is like any other.
    def take_neighbour
      size = ResponseEnd.of(rest) or return "no answer to /before"

      first = rest.slice!(0, size)
      first.start_with?("HTTP/1.1 200 ") && first.include?("ok") ? "ok" : first
    end

    # The bytes that are as expected, and the statuses behind them.
    def split(bytes, expected)
      return [bytes] unless bytes.start_with?(expected)

      [expected, *bytes[expected.bytesize..].scan(%r{^HTTP/1\.1 (\d{3}) }n).flatten.map(&:to_i)]
    end

    def plain(bytes)
      bytes.gsub(/^Date: [^\r]*/n, "Date: now").gsub(/^Connection: (?:close|keep-alive)\r\n/n, "")
    end

    def count(path) = @outcome.calls.count { |call| call["env"]["PATH_INFO"] == path }
  end
end
