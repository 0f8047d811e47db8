# frozen_string_literal: true

require "fileutils"
require "open3"
require "rubygems/package"

# The precompiled gem: the files of the source gem but for the sources in Rust, and the extension as it was built for
# each of several Rubies. It is put together in a directory of its own.
class NativeGem
  # What may be linked is what every system with a glibc has, and that of Debian 12, Ubuntu 22.04 and RHEL 9.
  GLIBC = Gem::Version.new("2.34")
  LIBRARIES = /\A(?:lib(?:c|m|dl|rt|pthread|gcc_s)|ld-linux-[\w-]+)\.so/
  private_constant :LIBRARIES

  class Failure < StandardError; end

  # What must hold of each build, whichever machine it is for.
  #
  # @param file [String] a shared object
  # @return [Gem::Version, nil] the glibc that it wants; nil if it was linked to another libc
  # @raise [Failure] if it wants a newer one than {GLIBC}, or libraries that not every system has
  def self.check(file)
    output, status = Open3.capture2e({ "LC_ALL" => "C" }, "readelf", "--dynamic", "--version-info", "--wide", file)
    raise Failure, "#{file}: readelf: #{output.lines.last&.chomp}" unless status.success?

    # A Ruby may be without a libruby, as most are that are not a distribution's: it brings the symbols itself.
    foreign = output.scan(/\(NEEDED\).*\[(.+)\]/).flatten.grep_v(LIBRARIES).grep_v(/\Alibc\.musl/)
    raise Failure, "#{file} needs #{foreign.join(", ")}, which not every system has" if foreign.any?

    wanted = output.scan(/\bGLIBC_([\d.]+)/).flatten.map { |version| Gem::Version.new(version) }.max
    raise Failure, "#{file} wants glibc #{wanted}, and #{GLIBC} is the newest it may want" if wanted && wanted > GLIBC

    wanted
  end

  # @param source [Gem::Specification] that of the source gem
  # @param stage [String] the directory
  def initialize(source, stage)
    @source = source
    @stage = stage
    @rubies = []
    FileUtils.rm_rf(stage)
  end

  # @param ruby [String] `MAJOR.MINOR`
  # @return [String] where the build for that Ruby goes
  def add(ruby)
    @rubies |= [ruby]
    File.join(@stage, build(ruby)).tap { |path| FileUtils.mkdir_p(File.dirname(path)) }
  end

  # Versions between those that have a build. RubyGems offers the gem to them as well: a requirement has no holes.
  #
  # @return [Array<String>]
  def missing
    numbers = @rubies.map { |ruby| ruby.split(".").map(&:to_i) }
    numbers.group_by(&:first).flat_map do |major, of_major|
      minors = of_major.map(&:last)
      (Range.new(*minors.minmax).to_a - minors).map { |minor| "#{major}.#{minor}" }
    end
  end

  # @param directory [String] where the gem goes
  # @return [String] its path
  def pack(directory)
    spec = specification
    (@source.files & spec.files).each do |file|
      FileUtils.mkdir_p(File.join(@stage, File.dirname(file)))
      FileUtils.cp(file, File.join(@stage, file))
    end
    path = File.expand_path(spec.file_name, directory)
    FileUtils.mkdir_p(directory)
    Dir.chdir(@stage) { Gem::Package.build(spec, false, false, path) }
    path
  end

  # @return [Gem::Specification]
  def specification
    rubies = @rubies.sort_by { |ruby| Gem::Version.new(ruby) }
    @source.dup.tap do |spec|
      spec.platform = platform
      spec.required_ruby_version = [">= #{rubies.first}", "< #{rubies.last.succ}.dev"]
      spec.extensions = []
      spec.dependencies.reject! { |dependency| dependency.name == "rb_sys" }
      spec.files = spec.files.grep_v(%r{\Aext/|\ACargo\.}) + rubies.map { |ruby| build(ruby) }
    end
  end

  private

  def build(ruby) = "lib/pitchfork_rs/#{ruby}/pitchfork_rs.so"

  # RubyGems knows `-gnu` since 3.3.22 only, and Debian 12 has an older one. Without it, glibc is meant.
  def platform
    Gem::Platform.local.dup.tap { |local| local.version = nil if local.version == "gnu" }
  end
end
