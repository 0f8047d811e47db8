# frozen_string_literal: true

require_relative "kill_workers"

module Soak
  # The newest mold dies every second or two, while reforks are asked for: some die in the middle of their making.
  class KillMold < Killing
    NAME = "kill-mold"
    PAUSE = (1.0..2.0)

    private

    def schedule(now)
      { kill: now + rand(PAUSE), refork: now + options.every }
    end

    # A kill does not wait until the server has got over the one before, and the time is taken from the last one.
    def strike(server, due, hurt_at)
      if Bench.now >= due[:refork]
        due[:refork] += options.every
        report.event("USR2")
        server.signal(:USR2)
      end
      return hurt_at if Bench.now < due[:kill]

      due[:kill] = Bench.now + rand(PAUSE)
      at = Bench.now
      kill(server, server.molds.max_by(&:generation)) ? at : hurt_at
    end
  end
end
