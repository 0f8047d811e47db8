# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"
require_relative "../common/signals"
require_relative "../run/surroundings"
require_relative "chart"
require_relative "labels"
require_relative "measurement"
require_relative "options"
require_relative "report"

module Cow
  # The command line.
  class Command
    def initialize(arguments)
      @options = Options.new(arguments)
    rescue OptionParser::ParseError => e
      abort "cow: #{e.message}; see --help"
    end

    # The exit status: 0 if all that is there was measured, 1 if something failed, 130 after Ctrl-C.
    def run
      $stdout.sync = true
      Bench.interrupt_on_signals
      introduce
      results = Dir.mktmpdir("pitchfork-rs-cow-") { |directory| measure_all(directory) }
      write(results)
      verdict(results)
    rescue Interrupt
      warn "interrupted"
      130
    end

    private

    def introduce
      here.each { |name, value| puts "#{name}: #{value}" }
      [[@options.applications, :name.to_proc], [@options.subjects, ->(subject) { subject::NAME }]].each do |all, name|
        all.each { |one| one.absence&.then { |why| puts "left out: #{name.call(one)}, #{why}" } }
      end
      warn "cow: this machine is busy, which makes it slow, and its workers uneven" if Run::Surroundings.busy?
    end

    def here
      @here ||= Run::Surroundings.to_h.merge(yjit: !Probe.code_bytes.nil?, **@options.amounts.to_h,
                                             rounds: @options.rounds)
    end

    # Each application may use its share of the time that is left.
    def measure_all(directory)
      finish = Bench.now + @options.limit
      applications = @options.applications.reject(&:absence)
      subjects = @options.subjects.reject(&:absence)
      applications.each_with_index.map do |application, index|
        limit = (finish - Bench.now) / (applications.size - index)
        result = Measurement.new(application, subjects, @options.amounts,
                                 directory:, rounds: @options.rounds, limit:).run
        puts "", Report.new(result, labels)
        result
      end
    end

    def labels = @labels ||= Labels.new(@options.amounts)

    def write(results)
      FileUtils.mkdir_p(File.dirname(@options.output))
      record = { surroundings: here, applications: results.map(&:to_h) }
      File.write("#{@options.output}.json", JSON.pretty_generate(record))
      File.write("#{@options.output}.svg", Chart.new(results, subtitle, labels).to_s)
      puts "", "written: #{@options.output}.json, #{@options.output}.svg"
    end

    def subtitle
      "Ruby #{RUBY_VERSION} with#{"out" unless here[:yjit]} YJIT, Linux #{here[:kernel]}, #{here[:at]}; " \
        "median, lowest and highest of up to #{here[:rounds]} rounds"
    end

    def verdict(results)
      failed = results.select { |result| result.failures.any? }
      failed.each do |result|
        warn "cow: #{result.application.name}: #{result.failures.keys.join(", ")} failed, see above"
      end
      failed.empty? ? 0 : 1
    end
  end
end
