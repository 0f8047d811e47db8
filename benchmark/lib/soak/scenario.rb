# frozen_string_literal: true

require_relative "load"
require_relative "report"
require_relative "server"

module Soak
  # What all scenarios have in common: a server, a load, a report.
  class Scenario
    CLIENTS = 8

    def initialize(options)
      @options = options
      @report = Report.new([self.class::NAME, *("over a Unix socket" if options.unix),
                            *("with #{options.clients} client(s)" if options.clients)].join(" "))
    end

    # The report. A scenario that gets stuck has failed.
    def run
      puts "#{@report.name} ..."
      begin
        perform
      rescue Bench::Stuck => e
        @report.expect(e.message, false)
      end
      @report
    end

    private

    attr_reader :options, :report

    # Keeps the directory, with the log, unless all has gone well.
    def with_server
      Server.run(workers: options.workers, unix: options.unix) do |server|
        yield server
        server.keep = options.keep || !report.ok?
      end
    end

    # Runs the load while the block runs, and adds it to the report.
    def under_load(server, **settings)
      report.began = Bench.now
      Load.new(server.address, clients: options.clients || self.class::CLIENTS, **settings).run do |load|
        yield load
      ensure
        report.tally = load.stop
      end
    end

    def seconds = options.seconds || self.class::SECONDS

    def expect_clean_end(server)
      server.stop
      report.expect("exit status 0 after QUIT", server.status&.exitstatus&.zero?, server.status.inspect)
      report.expect("nothing left running", server.survivors.empty?)
    end

    def expect_no_complaints(server)
      complaints = server.complaints
      report.expect("no error in the log", complaints.empty?, [complaints.size, *complaints.first].join(": "))
    end
  end
end
