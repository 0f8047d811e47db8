# frozen_string_literal: true

module PitchforkRs
  class Configurator
    # Directives of Unicorn that there is no use for here, and what to do instead.
    # @api private
    FOREIGN_DIRECTIVES = {
      after_fork: "use after_worker_fork, and after_mold_fork for what shall happen once per mold",
      before_exec: "remove it: the server does not execute itself anew",
      default_middleware: "remove it: no middleware is added to the application",
      preload_app: "remove it: the application is always loaded before the workers are forked",
      user: "remove it and start the server as that user, for example with User= in a systemd unit",
      worker_exec: "remove it: workers are forked from the mold, and never executed anew"
    }.freeze
    private_constant :FOREIGN_DIRECTIVES
  end
end
