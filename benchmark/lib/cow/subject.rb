# frozen_string_literal: true

require "rbconfig"
require_relative "../common/session"
require_relative "application"
require_relative "sample"

module Cow
  # How much is asked of everybody.
  #
  # @!attribute workers [Integer] processes that serve
  # @!attribute warm [Integer] calls of each process until it is warm
  # @!attribute requests [Integer] calls of all together afterwards
  Amounts = Struct.new(:workers, :warm, :requests, keyword_init: true) do
    # Calls of each process after a fork, so that it has begun to work.
    def first = 10

    # What is one worker's share of the requests.
    def share = requests / workers
  end

  # Something with the application in it, started to have its memory measured.
  class Subject
    # It did not do what it should.
    class Failed < StandardError; end

    # Whatever the surroundings say must not change what is measured.
    ENVIRONMENT = { "PORT" => nil, "WEB_CONCURRENCY" => nil, "RACK_ENV" => "production" }.freeze
    CONFIG = File.expand_path("app/config.ru", __dir__)

    # Why it cannot be measured here; nil if it can.
    def self.absence = nil

    # @param directory [String] an empty one, for its files
    # @param earlier [Hash{String => Hash{Symbol => Sample}}] what others have shown in this round, by name and stage
    def initialize(application, amounts, directory, earlier)
      @application = application
      @amounts = amounts
      @directory = directory
      @earlier = earlier
    end

    # Starts it, has it work, and ends it.
    # @return [Hash{Symbol => Sample}] by stage
    # @raise [Failed]
    def measure
      start
      stages
    rescue Bench::Stuck, Bench::Client::Failed, *Bench::Session::GONE => e
      raise Failed, "#{e.message} (#{e.class})\n#{@session&.log_tail}"
    ensure
      @session&.kill
    end

    private

    attr_reader :application, :amounts, :earlier

    def path(name) = File.join(@directory, name)

    def session(*command, **rest)
      environment = { **ENVIRONMENT, **application.environment, "COW_APP" => application.rackup }
      Bench::Session.new(*command, log: path("log"), environment:, directory: application.directory, **rest)
    end

    def wait_until(what, seconds: 120)
      Bench.wait_until(what, seconds:) do
        raise Bench::Stuck, "ended before: #{what}" if @session.ended?

        yield
      end
    end
  end
end
