# frozen_string_literal: true

begin
  require "fiddle"
rescue LoadError
  nil # then the C heap is left as it is
end

# What a mold does before it forks, in Ruby: otherwise the first collections of the children would write into all that
# they share, and the comparison would be with an easy opponent.
module Heap
  module_function

  # Here, not when it is needed: before Ruby 3.2 a new constant makes all code look up its constants anew, and write
  # what it has found into pages that were shared.
  def functions
    return unless defined?(Fiddle)

    pointer = Fiddle::TYPE_VOIDP
    size = Fiddle::TYPE_SIZE_T
    [function("malloc_trim", [size], Fiddle::TYPE_INT), function("malloc", [size], pointer),
     function("free", [pointer], Fiddle::TYPE_VOID)]
  rescue Fiddle::DLError
    nil # a C library that is not glibc
  end

  def function(name, arguments, result)
    Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, result)
  end

  TRIM, ALLOCATE, FREE = *functions

  def prepare
    4.times { GC.start }
    Process.warmup if Process.respond_to?(:warmup)
    tidy if FREE
  end

  # The C heap, so that glibc does not sort its free chunks in each child.
  def tidy
    TRIM.call(0)
    256.times { FREE.call(ALLOCATE.call(96 * 1024)) }
  end
end
