//! What processes do before they fork, so that their children write into fewer of the pages they share.

use std::sync::atomic::{AtomicBool, Ordering};

use magnus::{Error, Ruby};
use pitchfork_core::sys::{heap, stack};

use crate::vm::{compatibility, slots};

/// How many collections an object has to survive to be old.
const AGE: usize = 3;

/// What a mold does: it makes survivors old, gives back the memory that is free, or that deep calls have left on the
/// stack, and keeps the children out of what is left of it between living objects and blocks.
pub fn prepare(ruby: &Ruby) -> Result<(), Error> {
    heap::open_holes();
    slots::open(ruby)?;
    collect(ruby)?;
    compatibility::pack_objects(ruby)?;
    stack::release_unused();
    heap::tidy();
    heap::fill_holes();
    Ok(())
}

/// What the monitor does before its first fork: the same, once and for good. All processes have its pages, and each
/// mold that used a hole in one of them would copy the page, and the monitor keep it for itself. A program that starts one
/// server after another has done it then.
pub fn settle(ruby: &Ruby) -> Result<(), Error> {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    collect(ruby)?;
    slots::keep_filled(ruby)?;
    heap::tidy();
    heap::fill_holes();
    heap::keep_filled();
    Ok(())
}

/// Ruby notes the age of an object in the object itself, so the first collections after a fork would write into every
/// page of the heap. Here they happen before, also where the application has collections disabled.
fn collect(ruby: &Ruby) -> Result<(), Error> {
    let was_disabled = ruby.gc_enable();
    // This one is spent on objects that have just been made.
    ruby.gc_start();
    let filled = compatibility::packs_objects(ruby).and_then(|packed| if packed { Ok(()) } else { slots::fill(ruby) });
    for _ in 0..AGE {
        ruby.gc_start();
    }
    if was_disabled {
        ruby.gc_disable();
    }
    filled
}
