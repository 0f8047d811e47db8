# frozen_string_literal: true

worker_processes Integer(ENV.fetch("SOAK_WORKERS"))
# Left to itself, the kernel takes megabytes of a response before anybody has to wait for its client.
listen ENV.fetch("SOAK_LISTEN"), sndbuf: 16 * 1024
# A request at a byte a second takes longer than the default.
client_header_timeout 60
write_timeout Integer(ENV.fetch("CLIENTS_WRITE_TIMEOUT"))
