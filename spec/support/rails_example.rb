# frozen_string_literal: true

require "json"
require "open3"
require_relative "descriptors"
require_relative "server"

# The application in `examples/rails`: installed in a directory of its own, prepared, and served.
module RailsExample
  ROOT = File.expand_path("../..", __dir__)
  SOURCE = File.join(ROOT, "examples/rails")
  # What whoever has tried the example by hand leaves in it.
  LEFTOVERS = %w[Gemfile.lock db/*.sqlite3* log storage tmp].freeze
  # The bundle is that of the example, not that of the specs.
  UNBUNDLED = ENV.keys.grep(/\ABUNDLER?_/).to_h { |name| [name, nil] }.merge("RUBYLIB" => nil).freeze
  ENVIRONMENT = Surroundings::ENVIRONMENT.merge(UNBUNDLED, "SECRET_KEY_BASE" => "not a secret").freeze
  private_constant :ROOT, :SOURCE, :LEFTOVERS, :UNBUNDLED

  # @return [String, nil] why it cannot be run here
  def self.obstacle
    gems = "gem 'rails', '~> 7.2.0'; gem 'sqlite3'; gem 'bootsnap'"
    _, status = Open3.capture2e(ENVIRONMENT, RbConfig.ruby, "-e", gems)
    "Rails 7.2, sqlite3 and bootsnap are not installed for this Ruby" unless status.success?
  end

  # Starts a server with the application, as {ServerExamples#start}.
  #
  # @param command [Array<String>] what Ruby runs, in the directory of the application
  # @param environment [String] Rails' own
  # @param config [String] what is added to config/pitchfork.rb
  def start_rails(*command, environment: "production", workers: 1, config: "", **options)
    variables = ENVIRONMENT.merge("RAILS_ENV" => environment, "WEB_CONCURRENCY" => workers.to_s)
    directory = File.expand_path("server-#{Array(@servers).size}")
    install(directory, config)
    run_ruby(directory, variables, "bin/rails", "db:prepare")
    start(File.read("#{SOURCE}/config.ru"), command: command, environment: variables, workers: workers, **options)
  end

  # Readers wait, too: whoever closes the last connection has the database for itself meanwhile.
  QUERY = <<~RUBY
    database = SQLite3::Database.new(ARGV[0], readonly: true)
    database.busy_timeout = 5000
    puts JSON.generate(database.execute(ARGV[1]))
  RUBY
  private_constant :QUERY

  # The results of a statement, read by another program than the server's.
  def query(server, statement)
    database = Dir[server.path("db/*.sqlite3")].first
    JSON.parse(run_ruby(server.directory, ENVIRONMENT, "-rjson", "-rsqlite3", "-e", QUERY, database, statement))
  end

  # The files of the database that a process has open.
  def database_files(pid) = Descriptors.of(pid).values.grep(/\.sqlite3/)

  private

  def install(directory, config)
    FileUtils.cp_r(SOURCE, directory)
    FileUtils.rm_rf(LEFTOVERS.flat_map { |pattern| Dir[File.join(directory, pattern)] })
    gemfile = File.join(directory, "Gemfile")
    File.write(gemfile, File.read(gemfile).sub('"../.."', ROOT.dump))
    File.write(File.join(directory, "config/pitchfork.rb"), config, mode: "a")
  end

  def run_ruby(directory, variables, *command)
    printed, status = Open3.capture2e(variables, RbConfig.ruby, *command, chdir: directory)
    expect(status).to be_success, printed
    printed
  end
end
