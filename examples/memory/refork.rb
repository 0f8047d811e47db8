# frozen_string_literal: true

# The first worker to have served 20 requests becomes the model of all others: they are forked again from its warm
# copy, and share its cache. Then once more, 200 requests later.
worker_processes 4
listen ENV.fetch("DEMO_LISTEN", "127.0.0.1:9292")
timeout 30
refork_after [20, 200]
