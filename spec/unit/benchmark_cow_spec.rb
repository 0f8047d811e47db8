# frozen_string_literal: true

require_relative "../../benchmark/lib/cow/app/probe"
require_relative "../../benchmark/lib/cow/chart"
require_relative "../../benchmark/lib/cow/labels"
require_relative "../../benchmark/lib/cow/options"
require_relative "../../benchmark/lib/cow/report"

module Cow
  RSpec.describe "the benchmark of shared memory" do
    def figures(pss, private_dirty = 0, shared_dirty = 0)
      <<~TEXT
        Size:                999 kB
        Rss:                 999 kB
        Pss:           #{pss} kB
        Pss_Dirty:           999 kB
        Shared_Clean:          1 kB
        Shared_Dirty:  #{shared_dirty} kB
        Private_Clean:         2 kB
        Private_Dirty: #{private_dirty} kB
        SwapPss:             999 kB
      TEXT
    end

    def memory(pss, private_dirty = 0) = Memory.new(pss, private_dirty, 0, 0, 0)

    def row(role, pss, code: 0, **rest)
      kinds = Mappings::KINDS.to_h { |kind| [kind, Memory.zero] }
      kinds[:code] = memory(code, code)
      Row.new(role:, pid: 1, memory: memory(pss, pss / 2), kinds:, calls: 7, **rest)
    end

    describe Memory do
      it "reads a roll-up" do
        read = described_class.parse("55ac49699000-7ffe000 ---p 00000000 00:00 0    [rollup]\n#{figures(120, 80, 30)}")
        expect(read.to_a).to eq([120, 80, 2, 30, 1])
        expect(read.shared).to eq(31)
      end

      it "sums up" do
        expect((described_class.parse(figures(1, 2, 3)) + described_class.parse(figures(10, 20, 30))).to_a)
          .to eq([11, 22, 4, 33, 2])
      end
    end

    describe Mappings do
      def smaps(mode, name, pss)
        "7f86a4000000-7f86a4001000 #{mode} 00000000 00:00 0 #{" " * 20}#{name}\n#{figures(pss)}VmFlags: rd wr ex mr\n"
      end

      it "tells kinds apart" do
        text = smaps("rw-p", "", 1) + smaps("rw-p", "[heap]", 2) + smaps("r-xp", "", 4) + smaps("---p", "", 8) +
               smaps("r-xp", "/usr/lib/lib ruby.so", 16) + smaps("rw-s", "/memfd:x (deleted)", 32) +
               smaps("rw-p", "[stack]", 64) + smaps("r-xp", "[vdso]", 128) + smaps("r--p", "[vvar]", 256) +
               smaps("rwxp", "[anon:Ruby:rb_yjit_reserve_addr_space]", 512) + smaps("rw-p", "[anon:Ruby:heap]", 1024)
        expect(described_class.parse(text).transform_values(&:pss))
          .to eq(anonymous: 1 + 8 + 1024, c_heap: 2, code: 4 + 512, files: 16, shared_memory: 32, stack: 64)
      end

      it "finds all of a real process, up to what is rounded" do
        IO.popen("cat", "r+") do |cat|
          cat.puts("ready")
          cat.gets
          row = Row.of("cat", cat.pid)
          mappings = File.readlines("/proc/#{cat.pid}/smaps").grep(/^Size:/).size
          expect(row.kinds.values.sum(&:pss)).to be_within(mappings).of(row.memory.pss)
          expect(row.kinds.values_at(:c_heap, :stack, :files).map(&:private_dirty)).to all(be_positive)
        end
      end
    end

    describe Sample do
      let(:sample) { described_class.new([row("mold", 10, code: 1), row("worker[0]", 30, code: 2)], row("monitor", 5)) }

      it "counts the monitor apart" do
        expect(%i[pss private_dirty code].map { |metric| sample.total(metric) }).to eq([40, 20, 3])
        expect(sample.to_h).to include(pss_kib: 40, pss_with_monitor_kib: 45, code_pss_kib: 3)
        expect(sample.to_h[:processes].map { |process| process[:role] }).to eq(%w[monitor mold worker[0]])
      end

      it "has no code where there is none" do
        expect(described_class.new([row("mold", 10)]).total(:code)).to be_nil
      end
    end

    describe Result do
      let(:result) { Result.new(Application.new(name: "app", title: "an <app>", rackup: "/config.ru")) }
      let(:labels) { Labels.new(Amounts.new(workers: 4, warm: 100, requests: 5000)) }
      let(:reforked) { Result::Key.new("pitchfork-rs", :forked) }

      def sample(pss, code) = Sample.new([row("process", pss, code:, code_bytes: 204_800)])

      before do
        [[1024, 100], [2048, 200], [1024, 300]].each_with_index do |(pss, code), round|
          result.add(round, "alone", warm: sample(pss, code), later: sample(pss, code))
          result.add(round, "forks", forked: sample(pss, code), later: sample(pss, code))
          result.add(round, "pitchfork-rs", warm: sample(pss * 4, code * 4), forked: sample(pss + 1024, code))
        end
      end

      it "relates figures to those of one warm process in the same round" do
        expect(result.ratio(reforked, :pss).to_a).to eq([2.0, 1.5, 2.0])
        expect(result.ratio(reforked, :code).to_a).to eq([1.0, 1.0, 1.0])
        expect(result.spread(reforked, :pss).to_a).to eq([2048, 2048, 3072])
      end

      it "compares this server with bare forks in the same stage" do
        expect(result.forks(reforked)).to eq(described_class::Key.new("forks", :forked))
        expect(result.forks(described_class::Key.new("pitchfork-rs", :warm))).to be_nil
        expect(%w[alone forks].map { |name| result.forks(described_class::Key.new(name, :later)) }).to eq([nil, nil])
        expect(result.to_h[:figures].find { |figure| figure[:subject] == "pitchfork-rs" && figure[:stage] == :forked })
          .to include(pss: include(to_bare_forks: { middle: 2.0, low: 1.5, high: 2.0 }))
      end

      it "shows the details of the round in the middle" do
        expect(result.typical(described_class::Key.new("alone", :warm)).total(:code)).to eq(300)
      end

      it "has no ratios without one warm process" do
        result.failures["alone"] = "it ended"
        expect(result.ratio(reforked, :pss)).to be_nil
        expect(result.keys.map(&:subject).uniq).to eq(%w[forks pitchfork-rs])
      end

      describe Report do
        subject(:lines) { described_class.new(result, labels).to_s.lines(chomp: true) }

        it "has a line for each subject and stage, and one for each process" do
          expect(lines.first).to eq("app: an <app>")
          expect(lines).to include(/\A  pitchfork-rs, after a refork +2\.0 +2\.00 \(1\.50–2\.00\) .* 0\.20 +1\.00\z/,
                                   /\A  4 bare forks, \+ 5000 requests +1\.0 +1\.00 +- /,
                                   /\A    process +7 +1\.0 +0\.0 +0\.5 .* 0\.29 +200\z/)
        end

        it "leaves out what YJIT would have made where it does not run" do
          plain = Result.new(result.application)
          plain.add(0, "alone", warm: Sample.new([row("process", 1024)]))
          expect(described_class.new(plain, labels).to_s).not_to match(/Pss of code|compiled/)
        end

        it "says loudly what failed" do
          result.failures["forks"] = "a child has ended\nThe end of the log:"
          expect(lines).to include("  FAILED: forks: a child has ended", "    The end of the log:")
          expect(lines.grep(/bare forks,/)).to be_empty
        end
      end

      describe Chart do
        subject(:svg) { described_class.new([result], "Ruby & Linux", labels).to_s }

        def bars = svg.scan(/<rect x='([\d.]+)' y='[\d.]+' width='([\d.]+)'/).map { |numbers| numbers.map(&:to_f) }

        it "has bars as long as the ratios to one warm process" do
          line = Float(svg[/<line x1='([\d.]+)'/, 1])
          memory = bars.select { |left, _| left == bars.first.first }.map(&:last)
          expect(memory.map { |width| (width / (line - bars.first.first)).round(1) }).to eq([1, 1, 1, 1, 4, 2])
          expect(svg).to include("pitchfork-rs, after a refork", "2.0 MB, ×2.00", "0.20 MB, ×1.00", "Ruby &amp; Linux",
                                 "app: an &lt;app&gt;")
        end

        it "has no panel for machine code where there is none" do
          plain = Result.new(result.application)
          plain.add(0, "alone", warm: Sample.new([row("process", 1024)]))
          expect(described_class.new([plain], "", labels).to_s).not_to include("machine code")
        end
      end
    end

    describe Options do
      def failure(*arguments)
        described_class.new(arguments)
        nil
      rescue OptionParser::ParseError => e
        e.message
      end

      it "takes everything for everybody unless told otherwise" do
        options = described_class.new(%w[--only generated --subjects forks,alone --workers 3 --requests 90])
        expect(options.applications.map(&:name)).to eq(%w[generated])
        expect(options.subjects).to eq([Alone, Forks]) # in the order in which they are measured
        expect(options.amounts).to have_attributes(workers: 3, warm: 100, requests: 90, share: 30)
        expect(described_class.new([]).subjects).to eq(SUBJECTS)
      end

      it "says what it does not understand" do
        expect(failure("--only", "django")).to include("django, known are strings, generated, rails")
        expect(failure("--subjects", "unicorn")).to include("unicorn, known are alone, pitchfork-rs, forks, puma")
        expect(failure("--workers", "0")).to include("0, wants more than 0")
        expect(failure("now")).to include("now")
      end
    end

    describe Application do
      it "says why it cannot be served" do
        expect(described_class.new(name: "x", title: "", rackup: "#{ROOT}/examples/none.ru").absence)
          .to eq("there is no examples/none.ru")
        expect(described_class.new(name: "x", title: "", rackup: __FILE__, gems: %w[rack no-such-gem]).absence)
          .to eq("it wants no-such-gem, not installed for this Ruby")
        expect(described_class.new(name: "x", title: "", rackup: __FILE__, gems: %w[rack]).absence).to be_nil
      end
    end

    describe Probe do
      let(:fields) { { "content-type" => "text/plain" }.freeze }
      let(:probe) { described_class.new(->(_env) { [200, fields, ["hello"]] }) }

      it "says who answers, and of code only to who lingers" do
        expect(probe.call({ "QUERY_STRING" => "" }))
          .to eq([200, { **fields, "x-benchmark-process" => Process.pid.to_s }, ["hello"]])
        # More may be compiled at any time.
        before = described_class.code_bytes
        told = probe.call({ "QUERY_STRING" => "linger" })[1].fetch("x-benchmark-code")
        expect(before ? Integer(told) : 0).to be_between(before.to_i, described_class.code_bytes.to_i)
      end
    end
  end
end
