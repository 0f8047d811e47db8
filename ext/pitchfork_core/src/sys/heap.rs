//! The C heap of a process that is about to fork, so that its children write into fewer of the pages they share.
//!
//! What is done here is done for glibc; another allocator is left as it is.

use std::ffi::c_void;
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
    // SAFETY: malloc_trim locks the heap itself and only releases what nobody uses; each block is freed once, and
    // never looked into.
    unsafe {
        libc::malloc_trim(0);
        // Larger than what is served from the lists of small chunks, smaller than what is mapped separately. One
        // request sorts at most 10,000 chunks; on a sorted heap it is a matter of nanoseconds.
        for _ in 0..256 {
            libc::free(std::hint::black_box(libc::malloc(96 * 1024)));
        }
    }
}

/// Takes the holes between living blocks out of use, so that what a child allocates stands together in pages of its own
/// instead of costing it a copy of a shared page here and there. Nothing grows by it: the holes are in memory anyway.
///
/// [`open_holes`] undoes it, and must before the next time: each generation would lose what the one before had free.
pub fn fill_holes() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: they only tell.
        let (info, end) = unsafe { (libc::mallinfo2(), libc::sbrk(0).addr()) };
        let top = end.saturating_sub(info.keepcost);
        let mut free = info.fordblks.saturating_sub(info.keepcost);
        let mut aside = Blocks(ptr::null_mut());
        for size in [16 * ROOM, 8 * ROOM, 4 * ROOM, 2 * ROOM, ROOM] {
            aside.take(size, top, &mut free);
        }
        let mut filling = Blocks(FILLING.swap(ptr::null_mut(), Ordering::Relaxed));
        for size in (24..ROOM).rev().step_by(16) {
            filling.take(size, top, &mut free);
        }
        FILLING.store(filling.0, Ordering::Relaxed);
        aside.give_back();
    }
}

/// Gives back what [`fill_holes`] has taken.
pub fn open_holes() {
    Blocks(FILLING.swap(ptr::null_mut(), Ordering::Relaxed)).give_back();
}

/// Allocated blocks, each of which holds the address of the next: a list that needs no memory besides.
struct Blocks(*mut c_void);

impl Blocks {
    /// Allocates blocks of this size for as long as they come from below `top`, and no more than `free` bytes.
    #[cfg(target_env = "gnu")]
    fn take(&mut self, size: usize, top: usize, free: &mut usize) {
        while *free >= size {
            // SAFETY: the block is ours, and large enough for the pointer that is written into it; or it is freed at
            // once, which is allowed for none as well.
            unsafe {
                let block = libc::malloc(size);
                if block.is_null() || block.addr() >= top {
                    return libc::free(block);
                }
                block.cast::<*mut c_void>().write(self.0);
                self.0 = block;
            }
            *free -= size;
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
