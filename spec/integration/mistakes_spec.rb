# frozen_string_literal: true

require "open3"
require "rbconfig"
require "support/mistakes"
require "support/surroundings"

# The real command, with one mistake at a time.
RSpec.describe "a mistake", :in_tmpdir do
  let(:root) { File.expand_path("../..", __dir__) }

  def left_running
    Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
      pid != Process.pid && File.readlink("/proc/#{pid}/cwd") == Dir.pwd
    rescue SystemCallError
      false
    end
  end

  def run(mistake)
    File.write("c.rb", "listen 'unix:bound.sock'\n#{mistake.config}\n")
    File.write("config.ru", mistake.ru)
    command = [RbConfig.ruby, "-I#{root}/lib", "#{root}/exe/pitchfork-rs", *mistake.arguments]
    Open3.capture3(Surroundings::ENVIRONMENT.merge(mistake.env), *command)
  end

  Mistakes.all.each do |mistake|
    where = mistake.arguments == %w[-c c.rb] ? mistake.config.lines.first || mistake.ru.lines.first : mistake.arguments
    it "such as #{mistake.name} (#{[*where].join(" ").strip[0, 60]}) gets one line, and nothing is started" do
      out, err, status = run(mistake)
      puts err if ENV["PITCHFORK_RS_SHOW_MISTAKES"]
      expect(err.lines.size).to eq(1), "more or less than one line:\n#{err}"
      line = err.chomp.delete_prefix("pitchfork-rs: ")
      expect(line).to mistake.line.is_a?(Regexp) ? match(mistake.line) : eq(mistake.line)
      expect([out, status.exitstatus, left_running]).to eq(["", 1, []])
      # The file of a socket stays, so it tells whether there was one. Only an address that cannot be bound is seen so
      # late.
      expect(File.socket?("bound.sock")).to be(line.include?("bind("))
    end
  end

  it "gets its line also where the path has letters that the locale has not" do
    Dir.mkdir("ordn\u00E9")
    lines = ["foo =", "raise '\u00E9'", "bogus 1"].map do |source|
      File.write("ordn\u00E9/c.rb", source)
      command = [RbConfig.ruby, "-I#{root}/lib", "#{root}/exe/pitchfork-rs", "-c", File.expand_path("ordn\u00E9/c.rb")]
      _, err, status = Open3.capture3(Surroundings::ENVIRONMENT.merge("LC_ALL" => "C"), *command)
      [status.exitstatus, *err.force_encoding("UTF-8").lines]
    end
    expect(lines).to match([[1, %r{/ordn\u00E9/c\.rb:1: syntax error}],
                            [1, %r{/ordn\u00E9/c\.rb:1: RuntimeError: \u00E9$}],
                            [1, %r{/ordn\u00E9/c\.rb:1: unknown directive "bogus"$}]])
  end

  it "is looked for in at least forty ways, each of them once" do
    seen = Mistakes.all.map { |mistake| [mistake.config, mistake.ru, mistake.arguments, mistake.env] }
    expect([seen.uniq.size, seen.size]).to match([be >= 40, seen.uniq.size])
  end
end
