# frozen_string_literal: true

require "fileutils"
require "open3"
require "rubygems/user_interaction"
require_relative "../../rakelib/native_gem"

RSpec.describe NativeGem, :in_tmpdir do
  let(:root) { File.expand_path("../..", __dir__) }
  let(:source) { Dir.chdir(root) { Gem::Specification.load("pitchfork-rs.gemspec") } }
  let(:native) { described_class.new(source, File.expand_path("stage")) }

  # Rake runs in the root.
  def pack
    directory = Dir.pwd
    quiet = Gem::SilentUI.new
    path = Gem::DefaultUserInteraction.use_ui(quiet) { Dir.chdir(root) { native.pack(directory) } }
    Gem::Package.new(path)
  end

  def add(*rubies)
    rubies.each { |ruby| File.write(native.add(ruby), "the build for #{ruby}") }
  end

  def link(code, *options)
    File.write("build.c", code)
    output, status = Open3.capture2e("cc", "-shared", "-fPIC", "-o", "build.so", "build.c", *options)
    expect(status).to be_success, output
    "build.so"
  end

  it "has a build for each Ruby instead of sources, and is not compiled when it is installed" do
    add("3.10", "3.3")
    package = pack
    builds = %w[3.3 3.10].map { |ruby| "lib/pitchfork_rs/#{ruby}/pitchfork_rs.so" }
    others = source.files.grep(%r{\A(?:lib|exe|docs)/|\A(?:README|CHANGELOG)\.md\z|\ALICENSE\z})
    expect(package.contents).to match_array(others + builds)
    expect(package.spec).to have_attributes(extensions: [], version: source.version, executables: source.executables)
    expect(package.spec.dependencies.map(&:name)).to eq(source.dependencies.map(&:name) - ["rb_sys"])
    package.extract_files("unpacked")
    expect(File.read("unpacked/#{builds.last}")).to eq("the build for 3.10")
  end

  it "is for no Ruby older or newer than those it has builds for" do
    add("3.10", "3.4", "3.3")
    wanted = pack.spec.required_ruby_version
    fit = %w[3.2.9 3.3.0 3.4.11 3.10.1 3.11.0.dev 3.11.0].select { |ruby| wanted.satisfied_by?(Gem::Version.new(ruby)) }
    expect(fit).to eq(%w[3.3.0 3.4.11 3.10.1])
  end

  it "tells which Rubies between those have no build" do
    add("3.1", "3.4", "3.3", "4.0", "4.2")
    expect(native.missing).to eq(%w[3.2 4.1])
  end

  it "has a name that every RubyGems knows, and takes" do
    add("3.3")
    platform = pack.spec.platform
    expect(platform.to_s).to match(/\A[^-]+-linux(?:-musl)?\z/)
    expect(platform === Gem::Platform.local).to be(true) # rubocop:disable Style/CaseEquality
  end

  it "leaves the source gem as it was" do
    add("3.3")
    expect { pack }.not_to(change { source.to_ruby })
  end

  describe "a build" do
    it "may want what every glibc has, and tells the newest that it wants" do
      wanted = described_class.check(link("#include <stdlib.h>\nint f(void) { return abs(rand()); }"))
      expect(wanted).to be_between(Gem::Version.new("2.2"), described_class::GLIBC)
    end

    it "may not want a glibc that is newer than most" do
      # As a linker writes it that has found the function in a newer library.
      File.write("versions", "GLIBC_2.77 { global: from_the_future; };")
      link("void from_the_future(void) {}", "-Wl,--version-script=versions", "-Wl,-soname,libc.so.6")
      FileUtils.mv("build.so", "future.so")
      build = link("void from_the_future(void); void f(void) { from_the_future(); }", "future.so")
      expect { described_class.check(build) }
        .to raise_error(described_class::Failure, "build.so wants glibc 2.77, and 2.34 is the newest it may want")
    end

    it "may not need a libruby, which not every Ruby has" do
      link("void ruby(void) {}", "-Wl,-soname,libruby.so.3.9")
      FileUtils.mv("build.so", "ruby.so")
      build = link("void ruby(void); void f(void) { ruby(); }", "ruby.so")
      expect { described_class.check(build) }
        .to raise_error(described_class::Failure, "build.so needs libruby.so.3.9, which not every system has")
    end

    it "is a shared object" do
      File.write("build.so", "text")
      expect { described_class.check("build.so") }.to raise_error(described_class::Failure, /\Abuild\.so: readelf: /)
    end
  end
end
