# frozen_string_literal: true

require "tmpdir"
require_relative "native_gem"

# Of bin/test-matrix, whose `forky-yjit` takes the same build as `forky`.
NATIVE_RUBIES = %w[host forky ruby34].freeze
CROSS_PLATFORMS = %w[x86_64-linux aarch64-linux x86_64-linux-musl aarch64-linux-musl].freeze
# No hole, and none that the tests have never run on.
CROSS_RUBIES = %w[3.1 3.2 3.3 3.4].freeze

# In the container, what cargo builds is what is packed.
ENV["CARGO_PROFILE_RELEASE_STRIP"] ||= "symbols" if ENV.key?("RUBY_TARGET")

namespace :gem do
  desc "Build the precompiled gem for this platform into pkg/, from a build on each Ruby of the test matrix"
  task :native do
    native = NativeGem.new(GEMSPEC, "tmp/native")
    # What is set for this bundle is not for those of the roots, nor for bin/setup.
    Bundler.with_unbundled_env { NATIVE_RUBIES.each { |name| add_build(native, name) } }
    native.missing.each do |ruby|
      warn "gem:native: not for release: there is no build for Ruby #{ruby}, which RubyGems would offer this gem to"
    end
    puts "gem:native: #{native.pack("pkg")}"
  rescue NativeGem::Failure => e
    abort "gem:native: #{e.message}"
  end

  desc "Build the precompiled gem for PLATFORM into pkg/, in a container of rb-sys-dock's"
  task :cross, [:platform] do |_, arguments|
    platform = arguments[:platform]
    unless CROSS_PLATFORMS.include?(platform)
      abort "gem:cross: wanted one of #{CROSS_PLATFORMS.join(", ")}, as in rake gem:cross[aarch64-linux]"
    end
    sh "bundle", "exec", "rb-sys-dock", "--platform", platform, "--ruby-versions", CROSS_RUBIES.join(","), "--build"
    Rake::Task["gem:check"].invoke("pkg/#{GEMSPEC.full_name}-#{platform}.gem")
  end

  desc "Check that the builds in a precompiled gem ask little of the system"
  task :check, [:file] do |_, arguments|
    file = arguments[:file] or abort "gem:check: wanted a gem's file, as in rake gem:check[pkg/#{GEMSPEC.name}.gem]"
    File.file?(file) or abort "gem:check: there is no #{file}"
    mkdir_p "tmp/check"
    Dir.mktmpdir(nil, "tmp/check") do |directory|
      Gem::Package.new(file).extract_files(directory)
      builds = Dir.glob("**/*.so", base: directory)
      abort "gem:check: there is no build in #{file}" if builds.empty?
      builds.sort.each do |build|
        puts "gem:check: #{build}: wants glibc #{NativeGem.check(File.join(directory, build)) || "none"}"
      end
    end
  rescue Gem::Package::Error, ArgumentError => e
    abort "gem:check: #{file} is not a gem: #{e.message}"
  rescue NativeGem::Failure => e
    abort "gem:check: #{e.message}"
  end

  # The root says itself why it is not to be had.
  def add_build(native, name)
    enter = name == "host" ? [] : ["bin/in-root", name]
    ruby, status = Open3.capture2(*enter, "ruby", "-e", 'print RUBY_VERSION[/\A\d+\.\d+/]')
    return warn("gem:native: without the Ruby of #{name}, see above") if status.exitstatus == 69

    status.success? or raise NativeGem::Failure, "the Ruby of #{name} does not run, see above"
    file = native.add(ruby)
    sh(*enter, ".ci/build-extension", out: file)
    chmod 0o755, file, verbose: false
    puts "gem:native: Ruby #{ruby} of #{name}: wants glibc #{NativeGem.check(file)}"
  end
end
