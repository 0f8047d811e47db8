//! Without the test harness: it runs tests on threads, each of which has a heap of its own, and the one that is meant
//! is the main thread's.

#![allow(unsafe_code)]

use pitchfork_core::sys::heap;

/// Bytes that are free between living blocks, those at the end of the heap left out.
#[cfg(target_env = "gnu")]
fn free_between() -> usize {
    // SAFETY: it only tells.
    let info = unsafe { libc::mallinfo2() };
    info.fordblks - info.keepcost
}

#[cfg(target_env = "gnu")]
fn main() {
    let mut blocks: Vec<Option<Box<[u8; 200]>>> = (0..20_000).map(|_| Some(Box::new([1; 200]))).collect();
    let room = vec![1_u8; 64 * 1024];
    let end = Box::new([1_u8; 200]);
    let highest = std::ptr::from_ref(&*end).addr();
    blocks.iter_mut().step_by(2).for_each(|block| *block = None);
    drop(room);
    heap::tidy();
    let before = free_between();
    assert!(before > 2_000_000, "there are holes: {before} bytes");

    heap::fill_holes();
    let filled = free_between();
    assert!(filled < before / 10, "{filled} of {before} bytes are still free");
    assert!(filled > 60_000, "room is left where there is much of it: {filled} bytes");
    let new: Vec<Box<[u8; 200]>> = (0..1_000).map(|_| Box::new([2; 200])).collect();
    let in_holes = new.iter().filter(|block| std::ptr::from_ref(&***block).addr() < highest).count();
    assert!(in_holes <= 64 * 1024 / 200, "{in_holes} new blocks are between old ones");
    drop(new);

    // Not twice as much the second time.
    for _ in 0..3 {
        heap::open_holes();
        let open = free_between();
        assert!(open.abs_diff(before) < before / 10, "{open} bytes are free again, and {before} were before");
        heap::fill_holes();
    }
    heap::open_holes();
}

#[cfg(not(target_env = "gnu"))]
fn main() {
    heap::fill_holes();
    heap::open_holes();
}
