# frozen_string_literal: true

module Cow
  # Memory in KiB. `pss` counts each page by the share of one of those that have it, so that the sum over processes
  # counts it once; `private_dirty` is what a process has written for itself alone.
  Memory = Struct.new(:pss, :private_dirty, :private_clean, :shared_dirty, :shared_clean) do
    # The sum of these fields in the text of `smaps` or `smaps_rollup`.
    def self.parse(text)
      new(*%w[Pss Private_Dirty Private_Clean Shared_Dirty Shared_Clean].map do |field|
        text.scan(/^#{field}:\s+(\d+) kB/).sum { |(size)| Integer(size) }
      end)
    end

    def self.zero = new(0, 0, 0, 0, 0)

    def +(other) = self.class.new(*to_a.zip(other.to_a).map(&:sum))

    # What others have too, written or not.
    def shared = shared_dirty + shared_clean
  end

  # What kinds of mappings a process has its memory in.
  module Mappings
    # Where Ruby keeps its objects is anonymous, as is what the C library maps for large blocks and for other threads:
    # the kernel cannot tell them apart. Only YJIT makes anonymous memory executable.
    KINDS = %i[anonymous c_heap code files shared_memory stack].freeze

    HEAD = /^\h+-\h+ (?<mode>\S{4}) \h+ \h+:\h+ \d+ *(?<name>.*)\n/

    module_function

    # @param smaps [String] the text of /proc/PID/smaps
    # @return [Hash{Symbol => Memory}] by kind
    def parse(smaps)
      kinds = KINDS.to_h { |kind| [kind, Memory.zero] }
      _before, *parts = smaps.split(HEAD)
      parts.each_slice(3) do |mode, name, figures|
        kind = kind(mode, name)
        kinds[kind] += Memory.parse(figures) if kind
      end
      kinds
    end

    # nil for what the kernel lends to every process.
    def kind(mode, name)
      return :shared_memory if mode.end_with?("s")

      case name
      when "", /\A\[anon:/ then mode.include?("x") ? :code : :anonymous
      when "[heap]" then :c_heap
      when /\A\[stack/ then :stack
      when %r{\A/} then :files
      end
    end
  end

  # A process that was looked at.
  #
  # @!attribute role [String] what it is there for
  # @!attribute memory [Memory] of all of it
  # @!attribute kinds [Hash{Symbol => Memory}] of its mappings
  # @!attribute code_bytes [Integer, nil] of the machine code that YJIT says it has made; nil if nobody could ask it
  # @!attribute calls [Integer] how often it has called the application
  Row = Struct.new(:role, :pid, :memory, :kinds, :code_bytes, :calls, keyword_init: true) do
    # Raises Errno::ENOENT or Errno::ESRCH if it is gone.
    def self.of(role, pid, code_bytes: nil, calls: 0)
      # In this order: the sum of rounded parts is some KiB off, so the whole is read from where it is rounded once.
      kinds = Mappings.parse(File.read("/proc/#{pid}/smaps"))
      memory = Memory.parse(File.read("/proc/#{pid}/smaps_rollup"))
      new(role:, pid:, memory:, kinds:, code_bytes:, calls:)
    end

    def to_h
      { role:, pid:, calls:, code_bytes:, **figures(memory), kinds: kinds.transform_values { |kind| figures(kind) } }
    end

    private

    def figures(memory) = { **memory.to_h, shared: memory.shared }.transform_keys { |name| :"#{name}_kib" }
  end
end
