# frozen_string_literal: true

require_relative "../../benchmark/lib/run/chart"
require_relative "../../benchmark/lib/run/report"
require_relative "../../benchmark/lib/run/result"

RSpec.describe Run::Result do
  let(:result) { Run::Result.new(Run::Scenario.new(name: "hello", title: "a <short> answer", path: "/")) }

  def round(rate, p99 = 100.0) = { rate:, p50: 50.0, p99:, processor: 20.0 }

  before do
    result.rounds["unicorn"].push(round(400.0), round(500.0), round(660.0))
    result.rounds["floor"].push(round(1000.0), round(1000.0), round(1100.0))
    result.calls.merge!("floor" => { "read" => 1.0, "write" => 1.0 }, "unicorn" => { "read" => 2.0, "writev" => 1.0 })
  end

  it "names the baseline first" do
    expect(result.names).to eq(%w[floor unicorn])
  end

  it "relates figures to those of the baseline in the same round" do
    expect(result.ratio("unicorn", :rate).to_a).to eq([0.5, 0.4, 0.6])
    expect(result.ratio("unicorn", :calls).to_a).to eq([1.5, 1.5, 1.5])
  end

  it "leaves out who has failed" do
    result.failures["unicorn"] = "it answered nonsense"
    expect(result.names).to eq(["floor"])
    expect(result.to_h[:servers].keys).to eq(["floor"])
  end

  it "has no ratios without a baseline" do
    result.failures["floor"] = "it ended"
    expect(result.ratio("unicorn", :rate)).to be_nil
    expect(result.spread("unicorn", :rate).middle).to eq(500.0)
  end

  describe Run::Report do
    subject(:lines) { described_class.new(result).to_s.lines(chomp: true) }

    it "has figures, and ratios with their spread" do
      expect(lines[0]).to eq("hello: a <short> answer; 1 worker, 4 connections")
      expect(lines[2]).to match(/\A  floor    1000 +50 +100 +20\.0 +2\.00\z/)
      expect(lines[3]).to match(/\A  unicorn  500 ×0\.50 \(0\.40–0\.60\) +50 ×1\.00 .* 3\.00 ×1\.50\z/)
    end

    it "says loudly what failed" do
      result.failures["unicorn"] = "status 500\nThe end of the server's log:"
      expect(lines).to include("  FAILED: unicorn: status 500", "    The end of the server's log:")
    end

    it "does without figures" do
      result.rounds.clear
      expect(lines).to eq(["hello: a <short> answer; 1 worker, 4 connections"])
    end
  end

  describe Run::Chart do
    subject(:svg) { described_class.new([result], "Ruby & Linux").to_s }

    def texts = svg.scan(%r{<text [^<>]*>([^<>]*)</text>}).flatten

    # Each with its place and its size.
    def bars
      svg.scan(/<rect x='([\d.]+)' y='[\d.]+' width='([\d.]+)'/).map { |numbers| numbers.map(&:to_f) }
    end

    it "is well-formed, and names what it shows" do
      open = svg.scan(%r{<(/?)(\w+)[^<>]*?(/?)>}).each_with_object([]) do |(closing, name, empty), stack|
        closing.empty? ? stack.push(name) : expect(stack.pop).to(eq(name))
        stack.pop unless empty.empty?
      end
      expect(open).to be_empty
      expect(svg).not_to match(/&(?!amp;|lt;|gt;|quot;|#39;)/)
      expect(texts).to include("Ruby &amp; Linux", "hello: a &lt;short&gt; answer", "unicorn", "0.50")
    end

    it "has a bar for each server but the baseline in each panel, as long as its ratio" do
      # The second is 1, as long as the way to the dashed line.
      line = Float(svg[/<line x1='([\d.]+)'/, 1])
      (left, rate), (_, p99), *others = bars
      expect(others.size).to eq(1)
      expect(p99).to be_within(0.2).of(line - left)
      expect(rate).to be_within(0.2).of(p99 / 2)
    end

    it "stays inside its frame" do
      result.rounds["unicorn"].each { |round| round[:p99] = 100_000.0 }
      right = Float(svg[/width="([\d.]+)"/, 1])
      expect(bars.map(&:sum).max).to be < right
      # The widest figure has five characters.
      expect(svg.scan(/<text x='([\d.]+)'/).flatten.map(&:to_f).max).to be < right - (5 * 8)
    end

    it "leaves out scenarios without ratios" do
      result.failures["floor"] = "it ended"
      expect(bars).to be_empty
    end
  end
end
