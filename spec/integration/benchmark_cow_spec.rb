# frozen_string_literal: true

require_relative "../../benchmark/lib/cow/measurement"
require_relative "../../benchmark/lib/cow/subjects"

RSpec.describe "the benchmark of shared memory, with real processes", :in_tmpdir do
  def application(code)
    File.write("config.ru", code)
    Cow::Application.new(name: "small", title: "a small one", rackup: File.expand_path("config.ru"))
  end

  def measure(*subjects, code: <<~RUBY)
    cache = nil
    run ->(_env) { [200, { "content-type" => "text/plain" }, ["\#{(cache ||= ["x" * 4_000_000]).size}\n"]] }
  RUBY
    amounts = Cow::Amounts.new(workers: 2, warm: 5, requests: 40)
    Cow::Measurement.new(application(code), subjects, amounts, directory: Dir.pwd, rounds: 1, limit: 0).run
  end

  def typical(result, stage) = result.typical(Cow::Result::Key.new(result.keys.last.subject, stage))

  # Whoever has lost its parent may take a while to be reaped.
  def alive?(pid)
    !File.read("/proc/#{pid}/stat").rpartition(")").last.start_with?(" Z")
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  it "measures one process" do
    result = measure(Cow::Alone)
    expect(result.failures).to be_empty
    expect(%i[warm later].map { |stage| typical(result, stage).rows.first.calls }).to eq([5, 25])
    row = typical(result, :later).rows.first
    expect(row.memory.private_dirty).to be > 4000
    expect(alive?(row.pid)).to be(false)
  end

  it "measures forks, which share what was warm before" do
    result = measure(Cow::Forks)
    expect(result.failures).to be_empty
    parent, *children = typical(result, :forked).rows
    expect(children.map(&:calls)).to eq([10, 10])
    expect(children.map { |row| row.memory.shared }).to all(be > 4000)
    expect(children.map { |row| row.memory.private_dirty }).to all(be < 4000)
    expect([parent, *children].map { |row| alive?(row.pid) }).to eq([false] * 3)
  end

  it "has forks call as often as this server's workers have answered" do
    result = measure(Cow::Pitchfork, Cow::Forks)
    workers, children = %w[pitchfork-rs forks].map do |subject|
      before, after = %i[forked later].map { |stage| result.typical(Cow::Result::Key.new(subject, stage)).worker_calls }
      after.zip(before).map { |pair| pair.reduce(:-) }
    end
    expect(workers.sum).to be >= 40
    expect(children).to eq(workers)
  end

  it "measures this server before and after a refork" do
    result = measure(Cow::Pitchfork)
    expect(result.failures).to be_empty
    before, after, later = %i[warm forked later].map { |stage| typical(result, stage) }
    expect([before, after, later].map { |sample| sample.rows.map(&:role) }).to all(eq(%w[mold worker[0] worker[1]]))
    expect(before.rows.drop(1).map { |row| row.memory.private_dirty }).to all(be > 4000)
    expect(after.rows.map { |row| row.memory.private_dirty }).to all(be < 4000)
    expect(before.rows.drop(1).map(&:calls)).to all(be >= 5)
    expect(later.rows.sum(&:calls) - after.rows.sum(&:calls)).to be >= 40
    expect([before, after].flat_map(&:rows).map(&:pid).uniq.select { |pid| alive?(pid) }).to be_empty
  end

  it "says why an application could not be prepared" do
    small = application("run nil")
    Dir.mkdir("app")
    small.rackup = File.expand_path("app/config.ru")
    small.set_up = ["sh", "-c", "echo no disk in $(pwd); exit 3"]
    result = Cow::Measurement.new(small, [Cow::Alone], nil, directory: Dir.pwd, rounds: 1, limit: 0).run
    expect(result.failures["preparation"]).to match(%r{\Ash failed .*: no disk in #{Dir.pwd}/app\z})
  end

  it "says what an application has died of, or answered" do
    expect(measure(Cow::Alone, code: 'raise "no database"').failures["alone"])
      .to match(/\Aended before: call 5 \(Bench::Stuck\)\n.*no database/m)
    expect(measure(Cow::Pitchfork, code: "run ->(_env) { [500, {}, []] }").failures["pitchfork-rs"])
      .to start_with("status 500 (Bench::Client::Failed)")
  end
end
