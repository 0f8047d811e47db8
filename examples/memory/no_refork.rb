# frozen_string_literal: true

# Each worker is forked from the mold before the first request, and so fills a cache of its own.
worker_processes 4
listen ENV.fetch("DEMO_LISTEN", "127.0.0.1:9292")
timeout 30
