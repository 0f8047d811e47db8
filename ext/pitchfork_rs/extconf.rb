# frozen_string_literal: true

unless RUBY_PLATFORM.include?("linux")
  abort "pitchfork-rs runs on Linux only (this is #{RUBY_PLATFORM}): " \
        "it relies on PR_SET_CHILD_SUBREAPER, EPOLLEXCLUSIVE and SOCK_SEQPACKET."
end

require "mkmf"
require "rb_sys/mkmf"

create_rust_makefile("pitchfork_rs/pitchfork_rs")
