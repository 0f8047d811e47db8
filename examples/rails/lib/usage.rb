# frozen_string_literal: true

# How many requests and queries there were. Each process counts for itself, in memory, and has a thread that adds what
# it has counted to the database.
#
# A fork copies the counters, but not the thread: each process has to {start} anew.
module Usage
  # Seconds between two additions.
  INTERVAL = 0.5
  # What is asked for the sake of asking, and by this module.
  OVERHEAD = /\A(?:SCHEMA|TRANSACTION|Tally)/
  private_constant :INTERVAL, :OVERHEAD

  # Counts requests.
  class Middleware
    def initialize(app)
      @app = app
    end

    def call(env)
      Usage.count("requests")
      @app.call(env)
    end
  end

  class << self
    # To be called in each process that serves. What has been counted before is for the parent to write.
    def start
      @stop = Queue.new
      forget
      @writer = Thread.new { write until @stop.pop(timeout: INTERVAL) }
      @writer.name = "usage"
    end

    # Writes what is left.
    def stop
      @stop << true
      @writer.join
      write
    end

    def count(name, by = 1)
      @lock.synchronize { @counts[name] += by }
    end

    private

    def forget
      @lock = Mutex.new
      @counts = Hash.new(0)
    end

    def write
      counts = @lock.synchronize { @counts.tap { @counts = Hash.new(0) } }
      return if counts.empty?

      # A process that is forked while a thread of it is inside SQLite leaves the child with SQLite's locks held.
      Pitchfork.prevent_fork { Rails.application.executor.wrap { Tally.add(counts) } }
    rescue ActiveRecord::ActiveRecordError => e
      Rails.logger.error("usage is written later: #{e.message}")
      counts.each { |name, value| count(name, value) }
    end
  end

  forget

  ActiveSupport::Notifications.subscribe("sql.active_record") do |event|
    count("failed queries") if event.payload[:exception]
    count("queries") unless OVERHEAD.match?(event.payload[:name])
  end
end
