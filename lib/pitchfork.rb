# frozen_string_literal: true

# For programs that require the gem pitchfork, which this one stands in for. Where that gem can be loaded, it is what
# they mean.
own = File.realpath(__FILE__)
other = lambda do |directories|
  files = directories.map { |directory| File.expand_path("pitchfork.rb", directory.to_s) }
  files.find { |file| File.file?(file) && File.realpath(file) != own }
end

# Under Bundler only the gems of the bundle can be found.
pitchfork = other.call($LOAD_PATH) || begin
  gem("pitchfork")
  other.call($LOAD_PATH)
rescue Gem::LoadError
  nil
end

if pitchfork
  # Our own second name must not become the module that the other gem fills.
  ours = defined?(Pitchfork) && defined?(PitchforkRs) && Pitchfork.equal?(PitchforkRs)
  Object.send(:remove_const, :Pitchfork) if ours
  require pitchfork
else
  require_relative "pitchfork_rs"
end
