# frozen_string_literal: true

require "rbconfig"
require_relative "../common/tool"

module Cow
  # Something to serve.
  #
  # @!attribute name [String] as on the command line
  # @!attribute title [String] what it is
  # @!attribute rackup [String] the path of its rackup file
  # @!attribute gems [Array<String>] what it wants besides Rack
  # @!attribute environment [Hash{String => String}] for the processes that have it
  # @!attribute set_up [Array<String>, nil] a command that makes what it needs
  # @!attribute hooks [String, nil] what a configuration of this server has to have
  Application = Struct.new(:name, :title, :rackup, :gems, :environment, :set_up, :hooks, keyword_init: true) do
    def initialize(gems: [], environment: {}, **rest)
      super
    end

    # Raises Bench::Tool::Failed.
    def prepare
      Bench::Tool.capture(*set_up, environment:, directory:, seconds: 60) if set_up
    end

    # Why it cannot be served here; nil if it can.
    def absence
      return "there is no #{rackup.delete_prefix("#{ROOT}/")}" unless File.exist?(rackup)

      missing = gems.reject { |gem| Gem::Specification.find_all_by_name(gem).any? }
      "it wants #{missing.join(", ")}, not installed for this Ruby" if missing.any?
    end

    def directory = File.dirname(rackup)
  end

  ROOT = File.expand_path("../../..", __dir__)

  # The environment is that of a production, in which the database is a file of this benchmark.
  RAILS_ENVIRONMENT = { "RAILS_ENV" => "production", "SECRET_KEY_BASE_DUMMY" => "1", "RAILS_LOG_LEVEL" => "fatal",
                        "DATABASE_URL" => "sqlite3:#{ROOT}/tmp/benchmark/rails.sqlite3" }.freeze

  APPLICATIONS = [
    Application.new(name: "strings", title: "400,000 strings, made by the first request",
                    rackup: "#{ROOT}/examples/memory/config.ru"),
    Application.new(name: "generated", title: "4,000 methods and constants, each used by each request",
                    rackup: File.expand_path("app/generated.ru", __dir__)),
    Application.new(name: "rails", title: "the Rails application in examples/rails",
                    rackup: "#{ROOT}/examples/rails/config.ru", gems: %w[rails sqlite3 bootsnap],
                    environment: RAILS_ENVIRONMENT,
                    set_up: [RbConfig.ruby, "#{ROOT}/examples/rails/bin/rails", "db:prepare"],
                    hooks: "before_fork { |_server| ActiveRecord::Base.connection_handler.clear_all_connections! }")
  ].freeze
end
