# frozen_string_literal: true

# Measures what reforking saves. The same application runs three times: in one process, in a cluster without reforking
# and in one with. Each measurement waits for a condition, never for a time.

require "io/console"
require "open3"
require "optparse"
require_relative "cluster"
require_relative "processes"
require_relative "report"

# One line that says what is being waited for: rewritten on a terminal, elsewhere written only when a new step begins.
class Progress
  def initialize(out)
    @out = out
    @shown = false
  end

  def step(text)
    done
    @step = text
    @out.tty? ? detail("") : @out.puts("#{text} ...")
  end

  def detail(text)
    return unless @out.tty?

    line = [@step, text].reject(&:empty?).join(" - ")
    @out.print("\r\e[K", line[0, @out.winsize.last - 1])
    @shown = true
  end

  def done
    @out.print("\r\e[K") if @shown
    @shown = false
  end
end

# The three measurements.
class Demo
  BOOT = 60
  WARM = 120
  REFORK = 120
  SETTLE = 60

  def initialize(progress)
    @progress = progress
  end

  def single
    @progress.step("one warm process")
    output, error, status = Open3.capture3("bundle", "exec", "ruby", File.join(__dir__, "warm_process.rb"),
                                           chdir: Cluster::ROOT)
    raise Cluster::Failure, "the application does not run by itself:\n#{error}" unless status.success?

    row = Report::Row.new("process", output[/\Apid=(\d+)/, 1].to_i, Processes::Memory.parse(output))
    Report::Section.new("one warm process", [row], nil)
  end

  def without_reforking
    @progress.step("a cluster without reforking")
    Cluster.run("no_refork.rb") do |cluster|
      boot(cluster)
      warm(cluster)
      section("without reforking", cluster)
    end
  end

  def with_reforking
    @progress.step("a cluster with reforking")
    Cluster.run("refork.rb") do |cluster|
      boot(cluster)
      refork(cluster)
      settle(cluster)
      warm(cluster)
      section("with reforking", cluster)
    end
  end

  private

  def boot(cluster)
    wait(cluster, "the server answers", BOOT) { cluster.answers? }
  end

  def warm(cluster)
    wait(cluster, "each worker has answered", WARM) do
      cluster.ask_all
      cluster.all_answered?
    end
  end

  def refork(cluster)
    wait(cluster, "a worker has become the next mold", REFORK) do
      cluster.ask_all
      cluster.generation&.positive?
    end
  end

  def settle(cluster)
    wait(cluster, "all workers are of the newest generation", REFORK) { cluster.settled? }
  end

  def section(title, cluster)
    rows = wait(cluster, "nothing is being replaced", SETTLE) { cluster.measure }
    rows = rows.map { |child, memory| Report::Row.new("#{child.role} gen #{child.generation}", child.pid, memory) }
    monitor = Report::Row.new("monitor", cluster.monitor, Processes::Memory.of(cluster.monitor))
    Report::Section.new(title, rows, monitor)
  end

  def wait(cluster, what, seconds, &)
    cluster.wait_until(what, seconds: seconds, progress: @progress.method(:detail), &)
  end
end

# Ends by an exception, so that the server is stopped on the way.
%w[TERM HUP].each { |name| trap(name) { exit 128 + Signal.list.fetch(name) } }

json = false
progress = Progress.new($stderr)
begin
  OptionParser.new do |options|
    options.banner = "Usage: bin/demo [options]"
    options.on("--short", "100,000 strings instead of 400,000") { ENV["DEMO_RECORDS"] = "100000" }
    options.on("--json", "print the figures as JSON") { json = true }
  end.parse!
  ENV["DEMO_RECORDS"] ||= "400000"

  demo = Demo.new(progress)
  report = Report.new(records: Integer(ENV.fetch("DEMO_RECORDS")), single: demo.single,
                      without: demo.without_reforking, with: demo.with_reforking)
  progress.done
  puts json ? report.to_json : report.to_s
rescue Cluster::Failure, OptionParser::ParseError => e
  progress.done
  abort "demo: #{e.message}"
rescue Interrupt
  progress.done
  exit 130
end
