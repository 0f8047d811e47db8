# frozen_string_literal: true

require_relative "lib/pitchfork_rs/version"

Gem::Specification.new do |spec|
  spec.name = "pitchfork-rs"
  spec.version = PitchforkRs::VERSION
  spec.summary = "A Rack server that forks its workers from a warmed process, so that they share memory"
  spec.description = "pitchfork-rs keeps one warmed process, the mold, and forks every worker from it, so that " \
                     "YJIT code and caches sit in pages shared by Copy-on-Write. Drop-in for Pitchfork's " \
                     "configuration, hooks, signals and logs; its core is written in Rust. Linux only."
  spec.authors = ["The pitchfork-rs authors"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata["rubygems_mfa_required"] = "true"

  spec.files = Dir[
    "lib/**/*.rb", "exe/*", "ext/**/*.{rs,rb,toml}", "Cargo.{toml,lock}",
    "docs/*.{md,svg}", "README.md", "CHANGELOG.md", "LICENSE"
  ]
  spec.bindir = "exe"
  spec.executables = ["pitchfork-rs"]
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/pitchfork_rs/extconf.rb"]

  spec.add_dependency "logger", "~> 1.4"
  spec.add_dependency "rack", ">= 2.2"
  spec.add_dependency "rb_sys", "~> 0.9.117"
end
