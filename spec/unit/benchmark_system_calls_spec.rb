# frozen_string_literal: true

require_relative "../../benchmark/lib/run/system_calls"

RSpec.describe Run::SystemCalls do
  it "reads calls by name, with or without errors, and not their sum" do
    expect(described_class.parse(<<~TEXT)).to eq("accept4" => 400, "epoll_wait" => 12, "shutdown" => 200)
      % time     seconds  usecs/call     calls    errors syscall
      ------ ----------- ----------- --------- --------- ----------------
       60.12    0.012345          30       400       200 accept4
       30.00    0.006000          30       200           shutdown
        9.88    0.000100           8        12           epoll_wait
      ------ ----------- ----------- --------- --------- ----------------
      100.00    0.018445          30       612       200 total
    TEXT
  end

  it "finds nothing in an empty table" do
    expect(described_class.parse("")).to eq({})
  end
end
