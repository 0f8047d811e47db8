# frozen_string_literal: true

require_relative "boot"

require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"

Bundler.require(*Rails.groups)

require_relative "../lib/usage"

module GuestBook
  # A guest book. For all environments; of their own they have nothing.
  class Application < Rails::Application
    config.load_defaults 7.2
    # What is not loaded in the mold is loaded again, and held again, by each worker.
    config.eager_load = !Rails.env.development?
    config.enable_reloading = Rails.env.development?
    config.consider_all_requests_local = Rails.env.development?

    # To the standard output, so that the lines are where the server's are, and there is no file to reopen.
    config.logger = ActiveSupport::Logger.new($stdout)
    config.log_level = ENV.fetch("RAILS_LOG_LEVEL", "info")

    # In the memory of each process. What a worker has cached before it is promoted, all later ones share. The keys have
    # to tell old from new, because nobody can expire what another process holds.
    config.cache_store = :memory_store

    config.active_record.dump_schema_after_migration = Rails.env.development?
    config.middleware.insert_before 0, Usage::Middleware
  end
end
