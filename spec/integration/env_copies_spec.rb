# frozen_string_literal: true

require "support/app_notes"

# Error reporters and loggers copy what they are given, value by value, and look at the copy on threads of their own.
RSpec.describe "an environment", :server do
  include AppNotes

  %i[dup clone].each do |way|
    it "can be copied in depth, by #{way}" do
      start_app(<<~RUBY, config: "early_hints true")
        copy = env.transform_values(&:#{way})
        facts = [copy["rack.input"].read, copy["pitchfork.worker"].nr, copy["pitchfork.timeout"].deadline.class,
                 copy["pitchfork.socket"].peeraddr(false)[3], copy["rack.early_hints"].respond_to?(:call),
                 copy["rack.hijack"].respond_to?(:call)]
        [200, {}, [facts.inspect]]
      RUBY
      request = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\ndata"
      expect(content(request)).to eq('["data", 0, Float, "127.0.0.1", true, true]')
    end
  end
end
