# frozen_string_literal: true

require_relative "inherited_sockets"
require_relative "listeners"

module PitchforkRs
  class HttpServer
    # Where a server listens.
    # @api private
    module Listening
      # In seconds: longer than this between two attempts is as good as never.
      ONE_DAY = 86_400
      private_constant :ONE_DAY

      # Adds a listener that only the worker has in which this is called: in the hook `after_worker_fork`, the one place
      # for it. When the worker leaves, what waits in it is served first.
      #
      # @example
      #   after_worker_fork do |server, worker|
      #     server.listen("127.0.0.1:#{9293 + worker.nr}", tries: -1, delay: 5)
      #   end
      #
      # @param address [Integer, String] as for the directive {Configurator#listen}
      # @param options [Hash] as there
      # @return [TCPServer, UNIXServer, nil] the socket; nil if this process listens on the address already
      # @raise [ConfigurationError] if the address or an option is wrong
      # @raise [SystemCallError] if the address cannot be bound; `Errno::EADDRINUSE` only after as many tries as wanted
      # @raise [RuntimeError] in any other place than the hook
      # @api public
      def listen(address, options = {})
        unless NativeMonitor.may_listen_privately?
          raise "listen works in after_worker_fork; what all workers listen on is for the configuration to say"
        end

        name, options = config.resolve_listener(address, options)
        return if LISTENERS.names.include?(name)

        before = LISTENERS.to_a
        show(retrying(name, options) { NativeMonitor.listen_privately(name, options) })
          .each { |line| logger.info("listening on #{line}") }
        opened = LISTENERS.to_a - before
        @private_listeners.concat(opened)
        opened.first
      end

      private

      # @return [Integer, nil] the exit status if the server was told to end meanwhile
      # @raise [BootFailure] if an address cannot be listened on, or an inherited socket is none
      def bind_listeners
        signal = catch(:signal) { bind_all }
        return unless signal

        let_go_of_listeners
        name = Signal.signame(signal)
        logger.info("#{name} received, starting #{name == "INT" ? "immediate" : "graceful"} shutdown")
        0
      rescue SystemCallError, BootFailure => e
        let_go_of_listeners
        restore_traps
        raise e if e.is_a?(BootFailure)

        raise BootFailure, config.locate_bind_error(e)
      end

      def bind_all
        inherited = InheritedSockets.take
        if config.default_listener? && !inherited.empty?
          # What the default address would be set up like.
          _, options = config.listeners.first
          inherited.take_rest.each { |_, sockets| adopt(sockets, options) }
        else
          config.listeners.each { |name, options| adopt(inherited.take(name), options) || bind(name, options) }
        end
        inherited.take_rest.each { |name, sockets| dismiss(name, sockets) }
        nil
      end

      def bind(name, options)
        show(retrying(name, options) { @native.bind(name, options) })
      end

      # @return [Array, nil] nil if there are no sockets to adopt
      def adopt(sockets, options)
        return if sockets.empty?

        show(@native.adopt(sockets, options)).each { |socket| logger.info("inherited #{socket}") }
        sockets.each(&:close)
      end

      def dismiss(name, sockets)
        numbers = sockets.map(&:fileno).join(",")
        logger.error("closing inherited socket addr=#{name} fd=#{numbers}: no listener is configured for that address")
        sockets.each(&:close)
      end

      # @return [Array<String>] the sockets' names in log lines
      def show(bound)
        bound.map do |name, descriptor, line|
          LISTENERS.add(name, descriptor)
          line
        end
      end

      # Makes way for an address, and binds it with the block, as often as it takes and may.
      def retrying(name, options)
        tries = options[:tries]
        begin
          logger.info("unlinking existing socket=#{name}") if NativeMonitor.make_way(name)
          yield
        rescue Errno::EADDRINUSE
          logger.error("adding listener failed addr=#{name} (in use)")
          raise if tries.zero?

          tries -= 1
          logger.error("retrying in #{options[:delay]} seconds (#{tries.negative? ? "infinite" : tries} tries left)")
          signal = NativeMonitor.pause((options[:delay].clamp(0, ONE_DAY) * 1000).ceil)
          throw :signal, signal if signal
          retry
        end
      end

      # In a mold that was a worker: the worker, which goes on, has them to itself.
      def forget_private_listeners
        LISTENERS.remove(@private_listeners)
        @private_listeners = []
      end

      def let_go_of_listeners
        @native.close
        LISTENERS.remove
      end
    end
    private_constant :Listening
  end
end
