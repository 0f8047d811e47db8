# frozen_string_literal: true

require "support/corpus"
require "support/corpus/check"
require "support/corpus/player"
require "support/server"
require "tmpdir"

# Plays every case over real sockets: whole, and in many pieces; and among other requests on one connection.
RSpec.describe "The HTTP corpus" do
  before(:context) do
    @directory = Dir.mktmpdir("pitchfork-rs-corpus-")
    @workers = {}
    @players = Hash.new { |players, config| players[config] = play_at(config) }
  end

  # Where each case stands alone.
  def alone(kase) = @players["keepalive_timeout 0\n#{kase.config}"]

  def among(kase) = @players[kase.config]

  def play_at(config)
    directory = File.join(@directory, @players.size.to_s)
    server = start_at(directory, config)
    @workers[server] = server.worker.pid
    tcp, unix = server.addresses.partition { |address| address.include?(":") }.flatten
    connect = { whole: -> { server.connect(tcp) }, cut: -> { server.connect(unix) } }
    random = Random.new(RSpec.configuration.seed)
    Corpus::Player.new(directory, log: server.path("log"), connect: connect, random: random)
  end

  def start_at(directory, config)
    app = File.join(Corpus::DIRECTORY, "app.ru")
    Server.new(directory, "instance_eval(File.read(#{app.dump}), #{app.dump})",
               config: "early_hints true\nclient_header_timeout 60\n#{config}",
               listen: ["127.0.0.1:0", File.join(directory, "socket")]).wait_until_ready
  end

  after(:context) do
    @workers.each_key(&:clean_up)
    FileUtils.remove_entry(@directory)
  end

  Corpus.sections.each do |section|
    describe section.title do
      section.cases.select(&:applies?).each do |kase|
        it kase.name do
          problems = alone(kase).play_all_ways(kase).filter_map { |outcome| report(kase, outcome) }
          expect(problems).to be_empty, -> { problems.join("\n\n") }
        end

        next unless kase.among?

        it "#{kase.name}, among other requests on one connection" do
          plain = alone(kase).play(kase)
          problems = among(kase).play_among(kase).filter_map { |among| among.problem(kase, plain) }
          expect(problems).to be_empty, -> { problems.join("\n\n") }
        end
      end
    end
  end

  it "passes Rack::Lint with every response that conforms to Rack" do
    problems = Corpus.cases.select(&:linted?).flat_map do |kase|
      plain = alone(kase).play(kase)
      linted = alone(kase).play_linted(kase)
      same = [plain, linted].map { |outcome| [outcome.status, outcome.decoded] }.uniq.one?
      same ? [] : ["#{kase.name}: #{linted}\n#{linted.log[0, 500]}"]
    end
    expect(problems).to be_empty, -> { problems.join("\n\n") }
  end

  it "leaves the workers as they were" do
    expect(@workers.keys.to_h { |server| [server, server.worker.pid] }).to eq(@workers)
  end

  it "has a case, or a spec of its own, for each rule" do
    wanted = Corpus.rows.flat_map { |section, rows| rows.grep(String).map { |row| [section, row] } }
    expect(Corpus.cases.map { |kase| [kase.section.name, kase.row] }.uniq).to match_array(wanted)

    specs = Corpus.rows.values.flatten.grep(Hash).map { |row| row.fetch("proven_by") }
    expect(specs).to all(satisfy { |spec| File.exist?(File.join(__dir__, "..", spec)) })
    RSpec.configuration.reporter.message("#{Corpus.cases.size} cases, #{wanted.size + specs.size} rules")
  end

  it "has no two cases of one name in a section" do
    names = Corpus.cases.map { |kase| [kase.section.name, kase.name] }
    expect(names.tally.select { |_, count| count > 1 }).to be_empty
  end

  def report(kase, outcome)
    problems = Corpus::Check.new(kase, outcome).problems
    [outcome.to_s, *problems, outcome.log[0, 500]].join("\n") if problems.any?
  end
end
