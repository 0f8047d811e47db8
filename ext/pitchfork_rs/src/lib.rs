//! The Ruby extension of pitchfork-rs.

use magnus::{Error, Ruby};

#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    ruby.define_module("PitchforkRs")?;
    Ok(())
}
