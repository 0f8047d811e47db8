# frozen_string_literal: true

require "pitchfork_rs"

RSpec.describe PitchforkRs::OutOfBandGC do
  subject(:collector) { described_class.new(every) }

  let(:every) { nil }
  let(:compatibility) { PitchforkRs::Compatibility }
  # Two heaps, and memory beside them, as Ruby might have them.
  let(:room) { [10_000, 1_000] }
  let(:allocations) { [50_000, 6_000] }
  let(:memory) { { malloc_increase_bytes: 0, malloc_increase_bytes_limit: 16_000_000 } }
  let(:vm) { { major: false, count: 7, state: :none } }
  let(:collected) { [] }

  before do
    allow(compatibility).to receive(:heap_room) { room.dup }
    allow(compatibility).to receive(:heap_allocations) { allocations.dup }
    allow(compatibility).to receive(:major_collection_wanted?) { vm[:major] }
    allow(GC).to receive(:stat) { |key| memory.fetch(key) }
    allow(GC).to receive(:count) { vm[:count] }
    allow(GC).to receive(:latest_gc_info) { vm.fetch(:state) }
    allow(compatibility).to receive(:collect_garbage) { collect }
  end

  def collect
    collected << (vm[:major] ? :major : :minor)
    vm[:count] += 1
    vm[:major] = false
    room.replace([10_000, 1_000])
    memory[:malloc_increase_bytes] = 0
  end

  # So many requests, each of which takes so much, and a pause after each.
  def serve(times, **taken)
    times.times do
      take(**taken)
      collector.pause
    end
  end

  def take(first: 0, second: 0, bytes: 0)
    [first, second].each_with_index do |objects, heap|
      allocations[heap] += objects
      room[heap] -= objects
    end
    memory[:malloc_increase_bytes] += bytes
    collector.count_request
  end

  it "leaves a heap alone that has room for the next request, twice as large" do
    collector
    serve(8, first: 1_000)
    expect(collected).to be_empty
    serve(1, first: 1_000)
    expect(collected).to eq([:minor])
  end

  it "goes by the heap that is full first" do
    collector
    serve(9, first: 10, second: 100)
    expect(collected).to eq([:minor])
  end

  it "goes by the memory beside the heaps" do
    collector
    serve(14, bytes: 1_000_000)
    expect(collected).to be_empty
    serve(1, bytes: 1_000_000)
    expect(collected).to eq([:minor])
  end

  it "begins anew after each collection" do
    collector
    serve(27, first: 1_000)
    expect(collected).to eq(%i[minor minor minor])
  end

  it "remembers a large request for a while, and forgets it" do
    collector
    serve(1, first: 3_000)
    serve(3, first: 1_000)
    expect(collected).to eq([:minor])
    serve(40)
    room[0] = 100
    serve(1)
    expect(collected).to eq([:minor])
  end

  it "shares out what several requests have taken between two pauses" do
    collector
    5.times { take(first: 1_000) }
    collector.pause
    expect(collected).to be_empty
  end

  it "learns also from a request in which Ruby has collected" do
    collector
    take(first: 6_000, bytes: 9_000_000)
    collect
    collector.pause
    expect(collected).to eq(%i[minor minor])
  end

  it "counts memory anew after a collection of Ruby's" do
    collector
    serve(5, bytes: 1_000_000)
    collect
    serve(1, bytes: 6_000_000)
    expect(collected).to eq(%i[minor minor])
  end

  it "makes a major collection as soon as one is wanted" do
    collector
    vm[:major] = true
    serve(2)
    expect(collected).to eq([:major])
  end

  it "completes what Ruby has begun" do
    collector
    vm[:state] = :sweeping
    allow(GC).to receive(:disable).and_return(false)
    allow(GC).to receive(:enable)
    serve(1)
    expect(GC).to have_received(:disable).ordered
    expect(GC).to have_received(:enable).ordered
  end

  it "leaves a collector disabled that was so" do
    collector
    vm[:state] = :sweeping
    allow(GC).to receive(:disable).and_return(true)
    allow(GC).to receive(:enable)
    serve(1)
    expect(GC).not_to have_received(:enable)
  end

  it "makes a major collection that is wanted without a pause, after a hundred requests" do
    collector
    vm[:major] = true
    99.times { collector.count_request }
    expect(collected).to be_empty
    collector.count_request
    expect(collected).to eq([:major])
  end

  it "makes no other collection without a pause" do
    collector
    room[0] = 0
    500.times { collector.count_request }
    expect(collected).to be_empty
  end

  describe "with an interval" do
    let(:every) { 5 }

    it "collects after so many requests" do
      collector
      serve(4)
      expect(collected).to be_empty
      serve(8)
      expect(collected).to eq(%i[minor minor])
    end

    it "counts from the last collection" do
      collector
      serve(3)
      vm[:major] = true
      serve(5)
      expect(collected).to eq([:major])
    end

    it "collects after a hundred requests without a pause" do
      collector
      100.times { collector.count_request }
      expect(collected).to eq([:minor])
    end
  end
end

RSpec.describe PitchforkRs::Compatibility do
  it "tells how much room the heaps have, and how much was taken of it" do
    GC.start
    before = described_class.heap_room
    allocated = described_class.heap_allocations
    kept = Array.new(1_000) { Object.new }
    used = before.zip(described_class.heap_room).map { |was, is| was - is }
    allocated = described_class.heap_allocations.zip(allocated).map { |is, was| is - was }
    expect([used.max, allocated.max]).to all(be_between(kept.size, kept.size + 500))
  end

  # Lets many objects grow old. Ruby must not make that collection itself.
  def want_major_collection
    kept = []
    20.times do
      kept << Array.new(200_000) { Object.new }
      3.times do
        GC.start(full_mark: false)
        return kept if described_class.major_collection_wanted?
      end
    end
    raise "no major collection was wanted"
  end

  it "makes the major collection that is wanted" do
    GC.start
    GC.disable
    expect(described_class.major_collection_wanted?).to be(false)
    kept = want_major_collection
    expect { described_class.collect_garbage }.to change { GC.stat(:major_gc_count) }.by(1)
    expect([described_class.major_collection_wanted?, kept.empty?]).to eq([false, false])
  ensure
    GC.enable
  end

  it "makes the major collection at once that a minor one has found wanted" do
    # Afterwards there is no reason for one, and Ruby makes none by itself.
    GC.start
    GC.disable
    allow(described_class).to receive(:major_collection_wanted?).and_return(true)
    expect { described_class.collect_garbage }.to change(GC, :count).by(2)
    allow(described_class).to receive(:major_collection_wanted?).and_return(false)
    expect { described_class.collect_garbage }.to change(GC, :count).by(1)
  ensure
    GC.enable
  end
end
