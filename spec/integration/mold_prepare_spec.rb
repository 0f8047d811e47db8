# frozen_string_literal: true

require "json"
require "support/server"

RSpec.describe "A mold that prepares", :server do
  # Defined here, so that the example also counts with Rubies that have none of their own.
  it "calls Process.warmup once, and nobody else does" do
    server = start(<<~RUBY, workers: 2)
      def Process.warmup = File.write("warmups", "\#{Process.pid}\\n", mode: "a")
      #{ServerExamples::HELLO}
    RUBY
    molds = [server.mold.pid.to_s]
    expect(server.lines("warmups")).to eq(molds)
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    server.alive_until("the old mold's end") { server.children.one?(&:mold?) }
    expect(server.lines("warmups")).to eq([*molds, server.mold.pid.to_s])
  end

  # What a request for /fill makes is garbage by half, between what stays. Each request makes as many objects as
  # have room, and answers with how many bytes of memory of its own a worker needs for each of them, and with figures of
  # Ruby's heap. And it looks at all arrays: nobody may see one that is not for him to use.
  with_holes = <<~'RUBY'
    def private_memory = File.read("/proc/self/smaps_rollup")[/^Private_Dirty: +(\d+)/, 1].to_i
    kept = nil
    run lambda { |env|
      kept = Array.new(100_000) { |number| number.even? ? [number] : Object.new && [number] } if env["PATH_INFO"] == "/fill"
      GC.start if env["PATH_INFO"] == "/collect"
      figures = { live: GC.stat(:heap_live_slots), pages: GC.stat(:heap_allocated_pages) }
      before, room = private_memory, GC.stat(:heap_free_slots) - 2_000
      room.times { Object.new }
      figures[:bytes] = (private_memory - before) * 1024 / room
      counts = ObjectSpace.count_objects
      visible = ObjectSpace.each_object(Array) { |array| array.inspect if array.size < 9 }
      figures.update(hidden: counts[:T_ARRAY] - visible, slots: counts[:TOTAL])
      [200, {}, [JSON.generate(figures)]]
    }
  RUBY

  def refork(server, generation)
    server.signal(:USR2)
    server.wait_for_workers(1, generation:)
    server.alive_until("the old mold's end") { server.children.one?(&:mold?) }
  end

  def figures(server, path = "/") = JSON.parse(server.get(path).body, symbolize_names: true)

  it "has the new objects of its workers stand together, and shows nobody how" do
    server = start(with_holes, config: 'require "json"')
    server.get("/fill")
    refork(server, 1)
    now = figures(server)
    # An object has 40. After Process.warmup there is too little room to tell.
    expect(now[:bytes]).to be_between(35, 50) unless Process.respond_to?(:warmup)
    # The monitor's are not among the fifth.
    expect(now[:hidden]).to be < (now[:slots] / 5) + 5_000
  end

  it "gives back what it has taken before it takes anything again" do
    server = start(with_holes, config: 'require "json"')
    live = (1..5).map do |generation|
      server.get("/fill")
      refork(server, generation)
      figures(server, "/collect")[:live]
    end
    # Some are taken in each generation, and more in one than in another.
    expect(live.last).to be < live.first * 2
  end

  it "needs no more room for it in each generation" do
    server = start(with_holes, config: 'require "json"')
    server.get("/fill")
    pages = (1..6).map do |generation|
      refork(server, generation)
      figures(server)[:pages]
    end
    # The first ones may learn what there is.
    expect(pages.last).to be < pages[1] + 6
  end

  it "collects also where the application does so by itself, and leaves that as it was" do
    server = start(<<~RUBY)
      GC.disable
      run ->(_env) { [200, {}, ["\#{GC.disable} \#{GC.stat(:major_gc_count)}"]] }
    RUBY
    collections = (1..2).map do |generation|
      refork(server, generation)
      disabled, collections = server.get.body.split
      expect(disabled).to eq("true")
      collections.to_i
    end
    expect(collections.last - collections.first).to be >= 4
  end

  # Each level of a sort block within a sort block is a call of C.
  deep = "def deep(levels) = levels.zero? ? 0 : [1, 2].sort { deep(levels - 1) }.size"

  # In kilobytes: that of the monitor, and those of its children.
  def stacks_of(server)
    [server, *server.children].map do |process|
      File.read("/proc/#{process.pid}/smaps")[/ \[stack\]\n.*?^Rss:\s+(\d+)/m, 1].to_i
    end
  end

  it "keeps none of the stack that deep calls have used before, nor does the monitor" do
    server = start(<<~RUBY, workers: 2, config: "#{deep}\ndeep(1000)")
      #{deep}
      run lambda { |_env|
        deep(1000)
        [200, {}, [File.read("/proc/self/smaps")[/ \\[stack\\]\\n.*?^Rss:\\s+(\\d+)/m, 1]]]
      }
    RUBY
    expect(stacks_of(server)).to all(be < 400)
    expect(server.get.body.to_i).to be > 600
    server.signal(:USR2)
    server.wait_for_workers(2, generation: 1)
    server.alive_until("the old mold's end") { server.children.one?(&:mold?) }
    expect(stacks_of(server)).to all(be < 400)
    expect(server.get.body.to_i).to be > 600
  end
end
