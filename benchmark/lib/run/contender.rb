# frozen_string_literal: true

require "rbconfig"
require_relative "../common/tool"
require_relative "../../../lib/pitchfork_rs/version"

module Run
  # A server program, and how it is started.
  class Contender
    ROOT = File.expand_path("../../..", __dir__)
    RACKUP = File.expand_path("app/config.ru", __dir__)
    FLOOR = "#{ROOT}/target/cargo/release/floor".freeze

    # Raises Bench::Tool::Failed.
    def self.build_floor
      environment = { "CARGO_TARGET_DIR" => "#{ROOT}/target/cargo" }
      Bench::Tool.capture("cargo", "build", "--release", "--quiet", "--locked",
                          "--manifest-path", "#{ROOT}/benchmark/floor/Cargo.toml", environment:, seconds: 300)
    end

    attr_reader :name

    # @yieldparam place [Place] where it shall serve
    # @yieldreturn [Array<String>] the command
    def initialize(name, &command)
      @name = name
      @command = command
    end

    def command(place) = @command.call(place)

    def there? = !version.nil?

    # nil if it is not installed.
    def version
      return @version if defined?(@version)

      @version = find_version
    end

    private

    def find_version
      return PitchforkRs::VERSION if name == "pitchfork-rs"
      return "of this tree" if name == "floor"
      return unless Bench::Tool.there?(name)

      Bench::Tool.capture(name, "--version")[/\d+\.\d+[\w.]*/]
    rescue Bench::Tool::Failed
      nil # a command without its gem
    end
  end

  # Where a server shall serve, and what.
  Place = Struct.new(:scenario, :address, :directory, keyword_init: true) do
    def path(name) = File.join(directory, name)

    def write(name, text) = path(name).tap { |path| File.binwrite(path, text) }

    # What Unicorn, Pitchfork and this server understand alike.
    def configuration
      write("config.rb", "worker_processes #{scenario.workers}\nlisten #{address.directive.dump}\n")
    end

    def puma_bind = address.unix? ? "unix://#{address}" : "tcp://#{address}"

    # One process is Puma's single mode.
    def puma_workers = scenario.workers == 1 ? 0 : scenario.workers

    # What the floor sends: the same body below a head of the usual length.
    def floor_response
      connection = "Connection: close\r\n" unless scenario.keep_alive
      head = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n#{connection}" \
             "Content-Type: text/plain\r\nContent-Length: #{scenario.answer.bytesize}\r\n\r\n"
      write("response", head + scenario.answer)
    end
  end

  CONTENDERS = [
    Contender.new("floor") do |place|
      [Contender::FLOOR, "serve", place.address.directive, "--response", place.floor_response,
       "--workers", place.scenario.workers.to_s, "--body", place.scenario.body.to_s.bytesize.to_s,
       "--pause-ms", place.scenario.pause.to_s, *("--keep-alive" if place.scenario.keep_alive)]
    end,
    Contender.new("pitchfork-rs") do |place|
      [RbConfig.ruby, "-I#{Contender::ROOT}/lib", "#{Contender::ROOT}/exe/pitchfork-rs", "-E", "production",
       "-c", place.configuration, Contender::RACKUP]
    end,
    Contender.new("unicorn") do |place|
      ["unicorn", "-E", "production", "-N", "-c", place.configuration, Contender::RACKUP]
    end,
    Contender.new("puma") do |place|
      ["puma", "-w", place.puma_workers.to_s, "-t", "1:1", "-e", "production", "--no-config", "-b", place.puma_bind,
       Contender::RACKUP]
    end,
    Contender.new("pitchfork") do |place|
      ["pitchfork", "-E", "production", "-c", place.configuration, Contender::RACKUP]
    end
  ].freeze
end
