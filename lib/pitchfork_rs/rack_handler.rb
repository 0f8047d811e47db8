# frozen_string_literal: true

require "pitchfork_rs"
require_relative "rack_handler/options"

module PitchforkRs
  # Runs a server for programs that start one by its name: rackup, and `rails server`.
  #
  # They load the application first and hand it over, so the monitor holds it, and so does each mold. The first mold has
  # nothing left to load, and what the application has opened or started by then is shared by all processes, or lost in
  # them: the command `pitchfork-rs` has neither problem.
  module RackHandler
    # Serves until the server is told to stop. The configuration is read as for the command: `config/pitchfork.rb`, if
    # there is no option `config_file`.
    #
    # @param app [#call]
    # @param hash [Hash, nil] options, from callers that know no keywords
    # @param options [Hash{Symbol => Object}] `:Host` and `:Port`, directives by name, and what else the caller keeps
    #   there for itself
    # @yieldparam server [HttpServer] before it starts
    # @return [void]
    # @raise [SystemExit] with status 1, after a line on standard error, if an option or the configuration is wrong or
    #   an address cannot be bound; with the server's status, if it could not go on
    def run(app, hash = nil, **options)
      config = Options.new({ **hash.to_h, **options }).configure
      $stdout.sync = $stderr.sync = true # as the command has them
      server = HttpServer.new(app, config)
      yield server if block_given?
      status = server.start(false).join
      exit(status) unless status.zero?
    rescue ConfigurationError, BootFailure => e
      abort("pitchfork-rs: #{e.message}")
    end

    # @return [Hash{String => String}] what the caller may show as the options to be given as `-O NAME=VALUE`
    def valid_options
      Options.described
    end
  end
end
