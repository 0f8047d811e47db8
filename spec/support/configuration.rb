# frozen_string_literal: true

require "pitchfork_rs/configurator"

# Configurations from source text, in an environment that says nothing.
RSpec.shared_context "with configurations" do
  let(:error_class) { PitchforkRs::ConfigurationError }

  around do |example|
    environment = ENV.to_h
    rackup = described_class::RACKUP.dup
    %w[PORT WEB_CONCURRENCY].each { |name| ENV.delete(name) }
    example.run
  ensure
    ENV.replace(environment)
    described_class::RACKUP.replace(rackup)
  end

  def configure(source, **options)
    File.write("pitchfork.conf.rb", source)
    described_class.new(config_file: "pitchfork.conf.rb", **options)
  end

  def error_of(source, **options)
    configure(source, **options)
    nil
  rescue error_class => e
    e
  end

  # The message, without the place it starts with.
  def complaint_of(line)
    error_of("\n#{line}\n")&.message&.delete_prefix("pitchfork.conf.rb:2: ")
  end

  def addresses_of(source, **options)
    configure(source, **options).listeners.map(&:first)
  end
end
