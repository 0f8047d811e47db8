# frozen_string_literal: true

require "pitchfork_rs/compatibility"

RSpec.describe PitchforkRs::Compatibility do
  {
    reliable_weak_tables?: { "2.7.8" => false, "3.1.2" => false, "3.2.2" => false, "3.2.3" => true, "3.2.10" => true,
                             "3.3.0" => true, "3.10.0" => true },
    rack_version_in_environment?: { "2.2.22" => true, "2.10" => true, "3.0.0" => false, "3.2.7" => false },
    asterisk_in_path_info?: { "2.2.22" => false, "3.1.9" => false, "3.2.0" => true, "3.10" => true }
  }.each do |question, answers|
    it "knows #{question}" do
      expect(answers.to_h { |version, _| [version, described_class.public_send(question, version)] }).to eq(answers)
    end
  end

  it "answers for this Ruby and this Rack when it is not told which" do
    require "rack"
    expect(described_class.reliable_weak_tables?).to eq(described_class.reliable_weak_tables?(RUBY_VERSION))
    expect(described_class.asterisk_in_path_info?).to eq(described_class.asterisk_in_path_info?(Rack.release))
  end
end
