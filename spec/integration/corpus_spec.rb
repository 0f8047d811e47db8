# frozen_string_literal: true

require "support/corpus"
require "support/corpus/check"
require "support/corpus/player"
require "support/server"
require "tmpdir"

# Plays every case against one server, over real sockets: whole, and in many pieces.
RSpec.describe "The HTTP corpus" do
  before(:context) do
    @directory = Dir.mktmpdir("pitchfork-rs-corpus-")
    app = File.join(Corpus::DIRECTORY, "app.ru")
    socket = File.join(@directory, "socket")
    @server = Server.new(@directory, "instance_eval(File.read(#{app.dump}), #{app.dump})",
                         config: "early_hints true\n", listen: ["127.0.0.1:0", socket])
    @server.wait_until_ready
    address = @server.addresses.grep(/:/).first
    connect = { whole: -> { @server.connect(address) }, cut: -> { @server.connect(socket) } }
    @player = Corpus::Player.new(@directory, log: @server.path("log"), connect: connect,
                                             random: Random.new(RSpec.configuration.seed))
    @worker = @server.worker.pid
  end

  after(:context) do
    @server.clean_up
    FileUtils.remove_entry(@directory)
  end

  Corpus.sections.each do |section|
    describe section.title do
      section.cases.select(&:applies?).each do |kase|
        it kase.name do
          problems = @player.play_all_ways(kase).filter_map { |outcome| report(kase, outcome) }
          expect(problems).to be_empty, -> { problems.join("\n\n") }
        end
      end
    end
  end

  it "passes Rack::Lint with every response that conforms to Rack" do
    problems = Corpus.cases.select(&:linted?).flat_map do |kase|
      plain = @player.play(kase)
      linted = @player.play_linted(kase)
      same = [plain, linted].map { |outcome| [outcome.status, outcome.decoded] }.uniq.one?
      same ? [] : ["#{kase.name}: #{linted}\n#{linted.log[0, 500]}"]
    end
    expect(problems).to be_empty, -> { problems.join("\n\n") }
  end

  it "leaves the worker as it was" do
    expect(@server.worker.pid).to eq(@worker)
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
