# frozen_string_literal: true

require "tmpdir"

# Files are read as they were written, also where no locale is set.
Encoding.default_external = Encoding::UTF_8

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.expect_with(:rspec) { |expectations| expectations.syntax = :expect }
  config.mock_with(:rspec) { |mocks| mocks.verify_partial_doubles = true }
  config.order = :random
  Kernel.srand(config.seed)
  config.full_backtrace = ENV.key?("FULL_BACKTRACE")
  config.raise_errors_for_deprecations!
  config.warnings = true

  # Gives an example an empty working directory of its own, which stays if the example fails.
  config.around(:each, :in_tmpdir) do |example|
    directory = Dir.mktmpdir("pitchfork-rs-")
    Dir.chdir(directory) { example.run }
    if example.exception
      RSpec.configuration.reporter.message("Directory of the failure: #{directory}")
    else
      FileUtils.remove_entry(directory)
    end
  end
end
