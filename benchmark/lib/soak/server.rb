# frozen_string_literal: true

require "fileutils"
require "forwardable"
require "rbconfig"
require "tmpdir"
require_relative "../common/address"
require_relative "../common/session"
require_relative "process_table"

module Soak
  # A server in a session of its own, observed from outside, and stopped in any case.
  class Server
    ROOT = File.expand_path("../../..", __dir__)
    APP = File.expand_path("app", __dir__)
    STOP_WITHIN = 30

    extend Forwardable

    attr_reader :address

    def_delegators :@session, :status, :log_tail, :ended?

    # Whether the directory shall stay.
    attr_writer :keep

    # Starts one in a new directory, yields it, and stops it. The directory stays if the block raises.
    #
    # @param app [String] the directory of its `config.ru` and `pitchfork.rb`
    # @param environment [Hash] more variables for the latter
    def self.run(workers: 4, unix: false, app: APP, environment: {})
      directory = Dir.mktmpdir("pitchfork-rs-soak-")
      server = new(directory, workers, unix, app, environment)
      server.keep = true
      server.start
      yield server
    ensure
      server&.stop
      server&.clean_up
    end

    def initialize(directory, workers, unix, app, environment)
      @directory = directory
      @workers = workers
      @app = app
      @environment = environment
      @address = unix ? Bench::Address.new(File.join(directory, "soak.sock")) : Bench::Address.free
      @log = File.join(directory, "server.log")
    end

    def start
      environment = { "SOAK_LISTEN" => @address.directive, "SOAK_WORKERS" => @workers.to_s, **@environment }
      @session = Bench::Session.new(RbConfig.ruby, "-I", "#{ROOT}/lib", "#{ROOT}/exe/pitchfork-rs",
                                    "-c", "#{@app}/pitchfork.rb", "#{@app}/config.ru",
                                    log: @log, environment: environment)
      wait_until("all workers ready") { complete? }
    end

    def monitor = @session.pid

    def signal(name)
      @session.signal(name)
    end

    def children = ProcessTable.children_of(monitor)
    def molds = children.select(&:mold?)
    def workers = children.select(&:worker?)

    # Its pid, or nil: there is one as soon as one is wanted.
    def reactor = children.find(&:reactor?)&.pid

    def generation = molds.filter_map(&:generation).max

    # Whether there is a mold, and a ready worker for each number.
    def complete?(now_there = children)
      numbers = now_there.select { |child| child.worker? && child.ready? }.map(&:nr)
      now_there.any? { |child| child.mold? && child.ready? } && numbers.uniq.size == @workers
    end

    # Besides, nobody is coming or going, and all are of one generation.
    def settled?(now_there = children.reject(&:reactor?))
      now_there.size == @workers + 1 && now_there.map(&:generation).uniq.size == 1 && complete?(now_there)
    end

    # A refork that was asked for during another one follows it at once: settled means settled for a while.
    def wait_until_settled(beyond: -1, seconds: 60)
      since = nil
      wait_until("settled beyond generation #{beyond}", seconds: seconds, poll: 0.02) do
        since = settled? && generation > beyond ? since || Bench.now : nil
        since && Bench.now - since > 0.5
      end
    end

    def wait_until(what, seconds: 30, poll: 0.01)
      Bench.wait_until(what, seconds: seconds, poll: poll) do
        raise Bench::Stuck, "the server ended (#{status}) while waiting: #{what}" if ended?

        yield
      end
    rescue Bench::Stuck => e
      raise Bench::Stuck, "#{e.message}\n#{children.join("\n")}\n#{log_tail}"
    end

    # Who is left of the server, the monitor included.
    def survivors = @session.members

    # The lines of the log that tell of something wrong. The application starts no processes: an unknown one is a child
    # that the monitor has lost.
    def complaints
      File.readlines(@log, chomp: true).grep(/ (ERROR|FATAL) -- |panicked|\[BUG\]|reaped unknown/)
    end

    def stop
      return unless @session

      signal(:QUIT) unless ended?
      Bench.wait_until("the end", seconds: STOP_WITHIN) { ended? }
    rescue Bench::Stuck => e
      warn "#{e.message}, killing"
    ensure # also after a second Ctrl-C
      @session&.kill
    end

    def clean_up
      @keep ? warn("kept: #{@directory}") : FileUtils.rm_rf(@directory)
    end
  end
end
