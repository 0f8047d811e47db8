# frozen_string_literal: true

# With PITCHFORK_RS_GC_STRESS in the environment Ruby collects at each allocation of the native code under test, so that
# an object which nothing keeps alive is missed at once. The examples that do so are tagged
# `:gc_stress`; it takes minutes.
module GcStress
  WANTED = ENV["PITCHFORK_RS_GC_STRESS"].to_s.match?(/\A(1|true|yes)\z/)

  # Not around a whole example: what RSpec allocates would take most of the time.
  def stressed
    return yield unless WANTED && RSpec.current_example.metadata[:gc_stress]

    GC.stress = true
    begin
      yield
    ensure
      GC.stress = false
    end
  end
end

RSpec.configure do |config|
  config.include(GcStress, :gc_stress)
end
