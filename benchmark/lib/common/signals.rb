# frozen_string_literal: true

# What the tools here have in common.
module Bench
  module_function

  # Raises Interrupt at the first signal that wants an end. A second one must not keep the first from ending what was
  # started.
  def interrupt_on_signals
    signals = %w[INT TERM HUP]
    signals.each do |signal|
      trap(signal) do
        signals.each { |other| trap(other, "IGNORE") }
        raise Interrupt
      end
    end
  end
end
