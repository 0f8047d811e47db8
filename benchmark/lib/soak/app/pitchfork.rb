# frozen_string_literal: true

worker_processes Integer(ENV.fetch("SOAK_WORKERS"))
listen ENV.fetch("SOAK_LISTEN")
