//! The slots of Ruby's heap in a process that is about to fork, so that its children write into fewer of the pages they
//! share.

use std::sync::atomic::{AtomicUsize, Ordering};

use magnus::rb_sys::AsRawValue;
use magnus::value::{Lazy, ReprValue};
use magnus::{Error, RArray, Ruby, Value};
use pitchfork_core::sparse::FreeSlots;

/// Pages of 4 KB with more free slots than this, of 102, stay open: a copy gives a child enough room.
const SPARSE: usize = 60;

/// At most one slot in so many is taken, so that Ruby needs no more than a quarter of its heap in new pages instead.
const SHARE: usize = 5;

/// Which part of the slots that Ruby counts as free it has not given, at most, in the first round of [`fill`], and in the
/// second, in 65,536ths: those of pages that it had set aside. To ask for them costs a new page, and would do so in each
/// generation.
static SET_ASIDE: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
const WHOLE: usize = 65_536;

/// What [`fill`] has taken: chains of arrays, each of which holds the next.
static FILLING: Lazy<RArray> = Lazy::new(|ruby| hidden(ruby.ary_new()));

/// What of it is there for good.
static KEPT: Lazy<RArray> = Lazy::new(|ruby| hidden(ruby.ary_new()));

/// Hides an array that nobody else knows, with all that it holds.
fn hidden(array: RArray) -> RArray {
    // SAFETY: it is a living object. Without a class Ruby does not show it to those who look at all objects, and nobody
    // else gets hold of it: only this module's own arrays, which are hidden as well, hold it.
    unsafe { rb_sys::rb_obj_hide(array.as_raw()) };
    array
}

/// Takes the free slots of pages that are nearly full out of use, so that a child's objects stand together: in pages
/// that are nearly empty, then in new ones. Otherwise a child copies a page for each few objects.
///
/// Ruby must have just collected, and may collect. It sets some pages aside then, for a marking by steps that may come; it gives them after
/// one more collection, in a second round. What has been taken is young, so that it takes three more until later ones do
/// not write to it. [`open`] undoes it, and must before the next time: each generation would lose what the one before had
/// free.
pub fn fill(ruby: &Ruby) -> Result<(), Error> {
    let room = ruby.gc_stat("heap_available_slots")? / SHARE;
    let chosen = fill_round(ruby, &SET_ASIDE[0], room)?;
    ruby.gc_start();
    fill_round(ruby, &SET_ASIDE[1], room - chosen).map(drop)
}

/// Takes no more than `room` slots, and gives how many they are.
fn fill_round(ruby: &Ruby, set_aside: &AtomicUsize, room: usize) -> Result<usize, Error> {
    ruby.gc_disable();
    let filled = take(ruby, set_aside).and_then(|(taken, free)| {
        let sparse = free.sparse(SPARSE, room);
        let (chosen, number) = choose(ruby, taken, |link| sparse.contain(address(link)))?;
        ruby.get_inner(&FILLING).push(chosen)?;
        Ok(number)
    });
    ruby.gc_enable();
    filled
}

/// Gives back what [`fill`] has taken, but for what was [kept](keep_filled): the next collection finds it.
pub fn open(ruby: &Ruby) -> Result<(), Error> {
    ruby.get_inner(&FILLING).clear()
}

/// Leaves to itself what [`fill`] has taken up to now, as [`heap::keep_filled`](pitchfork_core::sys::heap::keep_filled)
/// does in the C heap.
pub fn keep_filled(ruby: &Ruby) -> Result<(), Error> {
    let filling = ruby.get_inner(&FILLING);
    ruby.get_inner(&KEPT).concat(filling)?;
    filling.clear()
}

/// Takes all free slots but for the part that was set aside before, or as far as Ruby gives them; then it is more.
fn take(ruby: &Ruby, set_aside: &AtomicUsize) -> Result<(Value, FreeSlots), Error> {
    // How many between two looks. A few in a new page do not matter.
    const STEP: usize = 64;
    let pages = || ruby.gc_stat("heap_allocated_pages");
    let (before, all) = (pages()?, ruby.gc_stat("heap_free_slots")?);
    let mut free = FreeSlots::default();
    let mut taken = ruby.qnil().as_value();
    let aside = all * set_aside.load(Ordering::Relaxed) / WHOLE;
    let mut left = all.saturating_sub(aside);
    while left > 0 {
        let step = left.min(STEP);
        for _ in 0..step {
            let link = hidden(ruby.ary_new_from_values(&[taken]));
            free.add(address(link));
            taken = link.as_value();
        }
        if pages()? > before {
            set_aside.store((aside + left) * WHOLE / all + 1, Ordering::Relaxed);
            break;
        }
        left -= step;
    }
    Ok((taken, free))
}

/// The links of the chain that are wanted, and their number.
fn choose(ruby: &Ruby, mut taken: Value, wanted: impl Fn(RArray) -> bool) -> Result<(Value, usize), Error> {
    let mut chosen = ruby.qnil().as_value();
    let mut number = 0;
    while let Some(link) = RArray::from_value(taken) {
        taken = link.entry(0)?;
        if wanted(link) {
            link.store(0, chosen)?;
            chosen = link.as_value();
            number += 1;
        }
    }
    Ok((chosen, number))
}

/// Where the slot of an object is.
fn address(object: impl ReprValue) -> usize {
    usize::try_from(object.as_value().as_raw()).unwrap_or(usize::MAX)
}
