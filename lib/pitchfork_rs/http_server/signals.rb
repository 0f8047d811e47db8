# frozen_string_literal: true

module PitchforkRs
  class HttpServer
    # What signals do, in the monitor and in its children. The native side calls these methods.
    # @api private
    module Signals
      # Signals that the monitor acts on. They are noted, and looked at between two events.
      MONITOR_SIGNALS = %w[INT QUIT TERM HUP USR1 USR2 TTIN TTOU].freeze
      # Signals that mean something to the monitor only, or that must not end a process by default.
      IGNORED_BY_CHILDREN = %w[HUP USR1 USR2 TTIN TTOU].freeze
      EXIT_SIGNALS = %w[INT QUIT TERM].freeze
      # Looked up once: each call of `Signal.list` makes a table whose keys Ruby then interns, and each worker would
      # write into its own copies of pages for it.
      SIGNAL_NUMBERS = Signal.list.slice(*MONITOR_SIGNALS).freeze
      private_constant :MONITOR_SIGNALS, :IGNORED_BY_CHILDREN, :EXIT_SIGNALS, :SIGNAL_NUMBERS

      private

      def trap_monitor_signals
        @traps = MONITOR_SIGNALS.to_h { |signal| [signal, note(signal)] }
        # A handler of any kind makes a child's end interrupt the monitor's wait.
        @traps["CHLD"] = trap("CHLD") { nil }
      end

      # For a program that goes on after its server.
      def restore_traps
        @traps.each { |signal, handler| trap(signal, handler || "DEFAULT") }
      end

      # From the fork until its hooks have run, a signal to exit ends a child at once: there is nothing to finish. An
      # empty block, unlike "IGNORE", is not inherited by the programs that an application starts.
      def trap_child_signals
        EXIT_SIGNALS.each { |signal| trap(signal) { exit!(0) } }
        IGNORED_BY_CHILDREN.each { |signal| trap(signal) { nil } }
        trap("CHLD", "DEFAULT")
      end

      # From then on only INT does.
      def trap_leave_signals
        %w[QUIT TERM].each { |signal| note(signal) }
      end

      def note(signal)
        number = SIGNAL_NUMBERS.fetch(signal)
        trap(signal) { NativeMonitor.note_signal(number) }
      end
    end
    private_constant :Signals
  end
end
