# frozen_string_literal: true

module PitchforkRs
  # The version of this gem; the Rust crates carry the same one.
  VERSION = "0.1.0"
end
