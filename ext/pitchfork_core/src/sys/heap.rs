//! The C heap of a process that is about to fork, so that its children write into fewer of the pages they share.
//!
//! What is done here is done for glibc; another allocator is left as it is.

use std::ffi::c_void;
#[cfg(target_env = "gnu")]
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What [`fill_holes`] has taken.
static FILLING: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Holes of this size, in bytes, and larger ones stay: what is allocated there stands together.
#[cfg(target_env = "gnu")]
const ROOM: usize = 4096;

/// Puts the free memory in order, and gives what it can back to the kernel.
///
/// glibc keeps freed chunks in a list that it sorts when the next large request comes, and sorting writes into every
/// page that holds one. A process that has just freed much and then forks would leave that to each of its children,
/// each in copies of its own: 8 MB in each of them were seen after 400,000 strings. So it is done here.
pub fn tidy() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it locks the heap itself and only releases what nobody uses.
        unsafe { libc::malloc_trim(0) };
        sort();
    }
}

/// Asks for more than is served from the lists of small chunks and less than what is mapped separately, so that glibc
/// sorts what was freed. One request sorts at most 10,000 chunks; on a sorted heap it is a matter of nanoseconds.
#[cfg(target_env = "gnu")]
fn sort() {
    for _ in 0..256 {
        // SAFETY: each block is freed once, and never looked into.
        unsafe { libc::free(std::hint::black_box(libc::malloc(96 * 1024))) };
    }
}

/// Takes the holes between living blocks out of use, so that what a child allocates stands together in pages of its own
/// instead of costing it a copy of a shared page here and there. The holes are in memory anyway, but for pages inside
/// the larger ones, which [`tidy`] gives back: of each of these one may come into memory again.
///
/// [`open_holes`] undoes it, and must before the next time: each generation would lose what the one before had free.
pub fn fill_holes() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: they only tell.
        let (info, end) = unsafe { (libc::mallinfo2(), libc::sbrk(0).addr()) };
        // Between the heap's first byte and the free ones at its end. What is mapped separately lies elsewhere.
        let within = end.saturating_sub(info.arena)..end.saturating_sub(info.keepcost);
        // No more than there is at all. What is kept for each small size counts as used, and is to be taken as well.
        let mut most = info.arena;
        let mut aside = Blocks(ptr::null_mut());
        for size in [16 * ROOM, 8 * ROOM, 4 * ROOM, 2 * ROOM, ROOM] {
            aside.take(size, &within, &mut most);
        }
        let mut filling = Blocks(FILLING.swap(ptr::null_mut(), Ordering::Relaxed));
        // As glibc has them: each size and 8 bytes more are a multiple of 16.
        for size in (24..ROOM).step_by(16).rev() {
            filling.take(size, &within, &mut most);
        }
        FILLING.store(filling.0, Ordering::Relaxed);
        aside.give_back();
        // What was put aside has been written to, and is not sorted.
        tidy();
    }
}

/// Gives back what [`fill_holes`] has taken, but for what was [kept](keep_filled).
pub fn open_holes() {
    Blocks(FILLING.swap(ptr::null_mut(), Ordering::Relaxed)).give_back();
}

/// Leaves to itself what [`fill_holes`] has taken up to now: neither this process nor a descendant gives it back. For one
/// whose pages all of them share, and would each have to copy to use the holes.
pub fn keep_filled() {
    FILLING.store(ptr::null_mut(), Ordering::Relaxed);
}

/// Allocated blocks, each of which holds the address of the next: a list that needs no memory besides.
struct Blocks(*mut c_void);

impl Blocks {
    /// Allocates blocks of this size for as long as they are `within` these addresses, and no more than `most` bytes.
    #[cfg(target_env = "gnu")]
    fn take(&mut self, size: usize, within: &Range<usize>, most: &mut usize) {
        while *most >= size {
            // SAFETY: the block is ours, and large enough for the pointer that is written into it; or it is freed at
            // once, which is allowed for none as well.
            unsafe {
                let block = libc::malloc(size);
                if block.is_null() || !within.contains(&block.addr()) {
                    return libc::free(block);
                }
                block.cast::<*mut c_void>().write(self.0);
                self.0 = block;
            }
            *most -= size;
        }
    }

    fn give_back(mut self) {
        while !self.0.is_null() {
            // SAFETY: `take` has allocated the block and written the address of the next into it, and nobody else
            // knows it.
            unsafe {
                let next = self.0.cast::<*mut c_void>().read();
                libc::free(self.0);
                self.0 = next;
            }
        }
    }
}
