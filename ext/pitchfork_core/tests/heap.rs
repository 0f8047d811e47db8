//! Without the test harness: it runs tests on threads, each of which has a heap of its own, and the one that is meant
//! is the main thread's.

#![allow(unsafe_code, clippy::unwrap_used)]

use pitchfork_core::sys::heap;

/// Bytes that are free between living blocks, those at the end of the heap left out.
#[cfg(target_env = "gnu")]
fn free_between() -> usize {
    // SAFETY: it only tells.
    let info = unsafe { libc::mallinfo2() };
    info.fordblks - info.keepcost
}

/// How many pages of a child's memory were touched for the first time while it allocated.
#[cfg(target_env = "gnu")]
fn pages_written_by_child(allocate: impl FnOnce() -> Vec<Vec<u8>>) -> i32 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    let faults = || getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.minor_page_faults());
    // SAFETY: no other thread is there, and the child only allocates before it exits.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let before = faults();
            let blocks = allocate();
            let pages = faults() - before;
            std::mem::forget(std::hint::black_box(blocks));
            // SAFETY: it ends the process, and nothing else.
            unsafe { libc::_exit(i32::try_from(pages).unwrap_or(255).min(255)) }
        }
        ForkResult::Parent { child } => match waitpid(child, None).unwrap() {
            WaitStatus::Exited(_, pages) => pages,
            other => panic!("{other:?}"),
        },
    }
}

/// Holes between living blocks of these sizes, some of each, and as many freed blocks as are kept for each size.
#[cfg(target_env = "gnu")]
fn holes(sizes: &[usize]) -> Vec<Option<Vec<u8>>> {
    let mut blocks: Vec<_> = (0..100).flat_map(|_| sizes.iter().map(|&size| Some(vec![1; size]))).collect();
    blocks.iter_mut().step_by(2).for_each(|block| *block = None);
    heap::tidy();
    blocks
}

#[cfg(target_env = "gnu")]
fn small_holes_are_out_of_the_way_of_children() {
    let blocks = holes(&(24..1_040).step_by(16).collect::<Vec<_>>());
    let small = || (0..60).map(|nr| vec![1; 24 + nr * 16]).chain([vec![1; 3000]]).collect();
    let before = pages_written_by_child(small);
    heap::fill_holes();
    let after = pages_written_by_child(small);
    // What they hold, some 35 KB, takes 9 pages; the rest is the stack, and what malloc itself notes.
    assert!(after <= 20, "a child wrote to {after} pages, and without filling to {before}");
    heap::open_holes();
    drop(blocks);
}

/// Those that are put aside while the smaller ones are filled.
#[cfg(target_env = "gnu")]
fn large_holes_are_sorted() {
    let blocks = holes(&[6_000, 7_000]);
    heap::fill_holes();
    // Not looked into, this only has glibc sort what it has not sorted yet.
    let pages = pages_written_by_child(|| vec![Vec::with_capacity(96 * 1024)]);
    // Else it writes into each hole.
    assert!(pages <= 30, "a child wrote to {pages} pages for one block");
    heap::open_holes();
    drop(blocks);
}

/// What the kernel got back from large holes stays with it, but for a page of each: what is left behind whole blocks.
#[cfg(target_env = "gnu")]
fn filling_takes_no_memory() {
    let resident = || pitchfork_core::sys::memory::Memory::of(std::process::id().cast_signed()).unwrap().rss;
    let mut blocks: Vec<Option<Vec<u8>>> = (0..400).map(|_| Some(vec![1; 120 * 1024])).collect();
    blocks.iter_mut().step_by(2).for_each(|block| *block = None);
    heap::tidy();
    let before = resident();
    heap::fill_holes();
    let after = resident();
    assert!(after < before + 1_500, "{after} kB instead of {before}");
    heap::open_holes();
    drop(blocks);
}

#[cfg(target_env = "gnu")]
fn main() {
    small_holes_are_out_of_the_way_of_children();
    large_holes_are_sorted();

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
    heap::keep_filled();
    heap::open_holes();
    let kept = free_between();
    assert!(kept < before / 2, "{kept} of {before} bytes are free again");

    filling_takes_no_memory();
    drop(blocks);
}

#[cfg(not(target_env = "gnu"))]
fn main() {
    heap::fill_holes();
    heap::open_holes();
}
