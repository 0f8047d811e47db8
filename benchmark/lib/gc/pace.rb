# frozen_string_literal: true

require_relative "../common/client"
require_relative "../common/clock"

module Garbage
  # Requests that come when they come, and not when the last one was answered: times between them are random, and a
  # request that has to wait counts from the time at which it was due.
  class Pace
    # What a round has seen: seconds for each request, sorted, and in how many of them there was a collection.
    Seen = Struct.new(:times, :collected) do
      def requests = times.size

      # @param share [Float] such as 0.99
      def quantile(share) = times[(share * times.size).ceil - 1]
    end

    # @param interval [Float] seconds between two requests, on average
    def initialize(address, path, interval)
      @client = Bench::Client.new(address)
      @path = path
      @interval = interval
    end

    # The times depend on the seed alone.
    # @return [Seen]
    # @raise [Bench::Client::Failed]
    def run(seconds, seed)
      random = Random.new(seed)
      due = began = Bench.now
      times = []
      collected = 0
      while (due -= @interval * Math.log(1 - random.rand)) < began + seconds
        collected += 1 if request_at(due).positive?
        times << (Bench.now - due)
      end
      Seen.new(times.sort, collected)
    end

    private

    # How many collections there were during the request.
    def request_at(due)
      left = due - Bench.now
      sleep left if left.positive?
      Integer(@client.get(@path).field("x-collections"))
    end
  end
end
