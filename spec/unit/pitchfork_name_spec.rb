# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "support/surroundings"

# Each example in a Ruby process of its own, with no gems but those of the standard installation and of the example.
RSpec.describe 'require "pitchfork"', :in_tmpdir do
  let(:library) { File.expand_path("../../lib", __dir__) }

  # A gem directory with a gem named pitchfork in it.
  def install_pitchfork
    FileUtils.mkdir_p(%w[gems/specifications gems/gems/pitchfork-9.9/lib])
    File.write("gems/gems/pitchfork-9.9/lib/pitchfork.rb", "module Pitchfork; REAL = true; end")
    File.write("gems/specifications/pitchfork-9.9.gemspec", <<~RUBY)
      Gem::Specification.new do |spec|
        spec.name = "pitchfork"
        spec.version = "9.9"
        spec.summary = "a stand-in"
        spec.authors = ["nobody"]
      end
    RUBY
  end

  def ruby(code, *options)
    paths = [File.expand_path("gems"), *Gem.path].join(File::PATH_SEPARATOR)
    environment = Surroundings::ENVIRONMENT.merge("BUNDLE_GEMFILE" => nil, "GEM_PATH" => paths)
    out, status = Open3.capture2e(environment, RbConfig.ruby, *options, "-I#{library}", "-e", code)
    expect(status).to be_success, out
    out.lines(chomp: true)
  end

  it "gives this gem's module where that gem is absent, also twice" do
    expect(ruby("require 'pitchfork'; p Pitchfork, Pitchfork.equal?(PitchforkRs), require('pitchfork')"))
      .to eq(%w[PitchforkRs true false])
    expect(ruby("require 'pitchfork_rs'; require 'pitchfork'; p Pitchfork")).to eq(["PitchforkRs"])
  end

  it "loads that gem where it is installed, whichever comes first" do
    install_pitchfork
    expect(ruby("require 'pitchfork'; p Pitchfork, Pitchfork::REAL, defined?(PitchforkRs)"))
      .to eq(%w[Pitchfork true nil])
    expect(ruby("require 'pitchfork'; require 'pitchfork_rs'; p Pitchfork::REAL, PitchforkRs::HttpServer"))
      .to eq(%w[true PitchforkRs::HttpServer])
    expect(ruby("require 'pitchfork_rs'; require 'pitchfork'; p Pitchfork::REAL, defined?(PitchforkRs::REAL)"))
      .to eq(%w[true nil])
  end

  it "loads it from the load path, before or behind our own directory" do
    install_pitchfork
    path = File.expand_path("gems/gems/pitchfork-9.9/lib")
    File.delete("gems/specifications/pitchfork-9.9.gemspec")
    expect(ruby("require 'pitchfork'; p Pitchfork::REAL", "-I#{path}")).to eq(["true"])
    expect(ruby("$LOAD_PATH << '#{path}'; require 'pitchfork'; p Pitchfork::REAL")).to eq(["true"])
  end
end
