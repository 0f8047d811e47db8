//! What a mold does before it forks, so that its children write into fewer of the pages they share.

use magnus::{Error, Ruby};
use pitchfork_core::sys::heap;

use crate::vm::compatibility;

/// How many collections an object has to survive to be old: three make it so, and the first of them may be spent on
/// objects that the hook before has just made.
const COLLECTIONS: usize = 4;

/// Makes survivors old, gives free memory back, and keeps the children out of what is left of it between living blocks.
///
/// Ruby notes the age of an object in the object itself, so the first collections after a fork would write into
/// every page of the heap. Here they have happened before.
pub fn prepare(ruby: &Ruby) -> Result<(), Error> {
    heap::open_holes();
    for _ in 0..COLLECTIONS {
        ruby.gc_start();
    }
    compatibility::warm_up(ruby)?;
    heap::tidy();
    heap::fill_holes();
    Ok(())
}
