//! How the Rubies that are supported differ, as far as native code has to know. What depends on a version rather than
//! on a method that may be there is in `compatibility.rb`.

use magnus::value::ReprValue;
use magnus::{Error, Ruby, Value};

use super::fork::process;

/// Calls `Process.warmup`, which came with Ruby 3.3.
pub fn warm_up(ruby: &Ruby) -> Result<(), Error> {
    let process = process(ruby)?;
    if process.respond_to("warmup", false)? {
        process.funcall::<_, _, Value>("warmup", ())?;
    }
    Ok(())
}
