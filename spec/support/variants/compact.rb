# frozen_string_literal: true

# Each major collection moves objects, in the specs and in the servers that they start: what native code holds on to
# without marking it, or without following it, is lost soon.
GC.auto_compact = true
