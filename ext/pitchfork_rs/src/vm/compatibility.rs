//! How the Rubies that are supported differ, as far as native code has to know. What depends on a version rather than
//! on a method that may be there is in `compatibility.rb`.

use magnus::value::ReprValue;
use magnus::{Error, Ruby, Value};

use super::fork::process;

/// Whether there is `Process.warmup`, which came with Ruby 3.3 and packs objects together.
pub fn packs_objects(ruby: &Ruby) -> Result<bool, Error> {
    process(ruby)?.respond_to("warmup", false)
}

/// Calls `Process.warmup`, if there is one.
pub fn pack_objects(ruby: &Ruby) -> Result<(), Error> {
    if packs_objects(ruby)? {
        process(ruby)?.funcall::<_, _, Value>("warmup", ())?;
    }
    Ok(())
}
