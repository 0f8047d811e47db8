# frozen_string_literal: true

require "open3"
require "rbconfig"

RSpec.describe "a request" do
  it "costs the garbage collector few objects besides the application's own" do
    tool = File.expand_path("../../benchmark/objects", __dir__)
    table, status = Open3.capture2(RbConfig.ruby, tool, "--servers", "pitchfork-rs")
    objects = table.scan(/^(\S+) +(\d+\.\d)/).to_h.transform_values { |count| Float(count) }
    expect(status).to be_success
    # Strings for the path, two fields, the name, the port and the address; and input, hijack and callbacks.
    expect(objects["pitchfork-rs"] - objects["application"]).to eq(9)
  end
end
