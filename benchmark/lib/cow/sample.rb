# frozen_string_literal: true

require_relative "memory"

module Cow
  # The processes of a subject at one time.
  #
  # @!attribute rows [Array<Row>] those that hold the application
  # @!attribute monitor [Row, nil] one that never loads it, and is counted apart
  Sample = Struct.new(:rows, :monitor) do
    # In KiB, or nil if there is no machine code.
    # @param metric [Symbol] `:pss`, `:private_dirty`, or `:code`, the Pss of the machine code
    def total(metric)
      return rows.sum { |row| row.memory[metric] } unless metric == :code

      code = rows.sum { |row| row.kinds[:code].pss }
      code if code.positive?
    end

    # By number; the first row is of who forks the workers.
    def worker_calls = rows.drop(1).map(&:calls)

    def to_h
      { pss_kib: total(:pss), pss_with_monitor_kib: total(:pss) + (monitor ? monitor.memory.pss : 0),
        private_dirty_kib: total(:private_dirty), code_pss_kib: total(:code),
        processes: [monitor, *rows].compact.map(&:to_h) }
    end
  end
end
