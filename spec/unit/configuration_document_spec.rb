# frozen_string_literal: true

require "support/documentation"
require "pitchfork_rs"

# The tables of docs/configuration.md, compared with the directives that there are.
RSpec.describe "docs/configuration.md" do
  let(:page) { Documentation.page("docs/configuration.md") }
  let(:directives) { rows("directive") }
  let(:hooks) { rows("hook") }

  around do |example|
    variables = ENV.to_h.slice("WEB_CONCURRENCY", "PORT")
    variables.each_key { |name| ENV.delete(name) }
    example.run
  ensure
    ENV.update(variables)
  end

  # The cells behind the first one, by the name that begins it.
  def rows(head) = page.rows(head).to_h { |cell, *others| [cell[/\A`(\w+)/, 1].to_sym, [cell, *others]] }

  def configure(&block)
    PitchforkRs::Configurator.new(config_file: nil).tap { |config| config.instance_exec(&block) if block }
  end

  def accepts?(directive, value)
    configure { public_send(directive, value) }
    true
  rescue PitchforkRs::ConfigurationError
    false
  end

  # What is set when nobody says anything.
  def default_of(directive)
    settings = { timeout: :soft_timeout, refork_after: :refork_condition }
    directive == :listen ? configure.listeners.first.first : configure[settings.fetch(directive, directive)]
  end

  # A documented value: the first piece of code in a cell.
  def value_in(cell) = instance_eval(cell[/`([^`]+)`/, 1])

  it "has each directive and each hook there is, and no other" do
    expect([*directives.keys, *hooks.keys]).to match_array(PitchforkRs::Configurator.directives)
  end

  it "has the true default of each directive" do
    directives.each do |name, (_, _, default)|
      next expect(default).to include("`#{configure[:logger].progname}`") if name == :logger

      expect(value_in(default)).to eq(default_of(name)), "#{name}: #{default} is not #{default_of(name).inspect}"
    end
    expect(configure[:cleanup_timeout]).to eq(directives[:timeout].first[/cleanup: (\d+)/, 1].to_i)
  end

  it "has the least value that each number may have" do
    checked = directives.select do |name, (_, type)|
      type[/\A(?:an Integer|a number of seconds) of at least ([\d.]+)/, 1]&.then do |least|
        least = least.include?(".") ? Float(least) : Integer(least)
        step = least.is_a?(Float) ? least / 2 : 1
        expect([accepts?(name, least), accepts?(name, least - step)]).to eq([true, false]), name.to_s
      end
    end
    expect(checked.size).to be > 10
  end

  it "says of each directive whether it takes nil, a boolean or one of several words" do
    directives.except(:listen, :refork_after, :timeout).each do |name, (_, type)|
      expect(accepts?(name, nil)).to eq(type.include?("`nil`")), "#{name} nil"
      boolean = type.start_with?("`true` or `false`")
      expect([true, false].map { |value| accepts?(name, value) }).to eq([boolean] * 2), name.to_s
      type.scan(/`(:\w+)`/).flatten.each { |word| expect(accepts?(name, word[1..].to_sym)).to be(true), name.to_s }
    end
  end

  it "has each option of listen, with its true default" do
    documented = page.rows("option of `listen`").flat_map do |names, _, default|
      names.scan(/`(\w+)`/).flatten.map { |name| [name.to_sym, value_in(default)] }
    end
    expect(documented.to_h).to eq(configure.listeners.first.last)
  end

  it "has each hook with its parameters, and says whether it logs by default" do
    hooks.each do |name, (cell, _, _, default)|
      wanted = begin
        configure { public_send(name, "no hook") }
      rescue PitchforkRs::ConfigurationError => e
        e.message[/\(([^()]*)\)\z/, 1]
      end
      expect(cell).to eq("`#{name} { |#{wanted}| }`")
      expect(default.start_with?("logs ")).to eq(!configure[name].nil?), name.to_s
    end
  end

  it "names each variable of the environment that counts, once" do
    names = page.rows("variable").flat_map { |cell, *| cell.scan(/`(\w+)`/).flatten }
    expect(names).to contain_exactly("WEB_CONCURRENCY", "PORT", "RACK_ENV", "LISTEN_FDS", "LISTEN_PID", "UNICORN_FD")
  end
end
