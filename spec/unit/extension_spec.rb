# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "support/surroundings"

RSpec.describe "The extension's builds", :in_tmpdir do
  let(:library) { File.expand_path("../../lib", __dir__) }
  let(:compiled) { $LOADED_FEATURES.grep(%r{/pitchfork_rs\.so\z}).first }
  let(:ruby) { RUBY_VERSION[/\A\d+\.\d+/] }

  # A lib directory as the gem's, with these files, or files of this content, as the builds in it.
  def install(builds)
    FileUtils.mkdir_p("gem")
    FileUtils.cp_r(library, "gem")
    FileUtils.rm_f(Dir.glob("gem/lib/pitchfork_rs/**/*.so"))
    builds.each do |place, file|
      path = File.join("gem/lib/pitchfork_rs", place, "pitchfork_rs.so")
      FileUtils.mkdir_p(File.dirname(path))
      File.file?(file) ? FileUtils.cp(file, path) : File.write(path, file)
    end
  end

  def run(*arguments)
    command = [RbConfig.ruby, "-Igem/lib", *arguments]
    Open3.capture3(Surroundings::ENVIRONMENT.merge("RUBYLIB" => nil), *command)
  end

  def loaded
    out, err, status = run("-rpitchfork_rs", "-e", 'puts $LOADED_FEATURES.grep(/pitchfork_rs\.so\z/)')
    expect(status).to be_success, err
    out.chomp.delete_prefix("#{File.realpath("gem/lib/pitchfork_rs")}/")
  end

  def complaint
    File.write("config.ru", "run ->(_env) {}")
    out, err, status = run(File.expand_path("../../exe/pitchfork-rs", __dir__), "--check-config")
    expect([out, status.exitstatus, err.lines.size]).to eq(["", 1, 1]), err
    err.chomp
  end

  before { require "pitchfork_rs" }

  it "is the one for this Ruby, if a precompiled gem brings it" do
    install(ruby => compiled, "1.8" => "not for us", "." => "neither this")
    expect(loaded).to eq("#{ruby}/pitchfork_rs.so")
  end

  it "is the one that was compiled here, if there is no other" do
    install("." => compiled)
    expect(loaded).to eq("pitchfork_rs.so")
  end

  it "is the one that was compiled here, if the precompiled ones are for other Rubies" do
    install("." => compiled, "1.8" => "not for us")
    expect(loaded).to eq("pitchfork_rs.so")
  end

  it "is missed in one line that says for which Rubies there are some" do
    install("1.10" => "a", "1.8" => "b", "1.9" => "c")
    expect(complaint).to eq(
      "pitchfork-rs: this precompiled gem is for Ruby 1.8, 1.9 and 1.10, and this is Ruby #{RUBY_VERSION}; " \
      "`gem install pitchfork-rs --platform ruby`, or `force_ruby_platform: true` in the Gemfile, builds it here"
    )
  end

  it "is missed in one line where none is there" do
    install({})
    expect(complaint).to eq("pitchfork-rs: the extension is not built: run bin/setup in #{File.realpath("gem")}")
  end

  it "is refused in one line, if it is for another system" do
    install(ruby => "\x7FELF")
    expect(complaint)
      .to match(%r{\Apitchfork-rs: this precompiled gem does not fit this system: .*/pitchfork_rs\.so; .* here\z})
  end

  it "is missed by programs that require it, as a LoadError" do
    install({})
    _, err, status = run("-e", 'begin; require "pitchfork_rs"; rescue LoadError => e; abort e.class.name; end')
    expect([err, status.exitstatus]).to eq(["PitchforkRs::Extension::Unavailable\n", 1])
  end
end
