//! The stack of a process that is about to fork.

use std::ffi::c_void;
use std::fs;
use std::ops::Range;
use std::ptr;

const PAGE: usize = 4096;
/// How far below the call of [`release_unused`] the stack stays as it is, in bytes: far more than that call itself uses,
/// also where the kernel's pages have 64 KB and it rounds up to their ends.
const MARGIN: usize = 128 * 1024;

/// Gives the kernel back what deeper calls than the present one have left on the stack of the main thread.
///
/// A stack never shrinks by itself: what a deep recursion has once written, as a parser's of a long literal, stays with the
/// process, and with all that it forks. Ruby reserves its whole main stack when it starts, and where it was compiled with
/// `-fstack-clash-protection`, as distributions do, that writes into each page: 8 MB in every process.
///
/// On another thread than the main one or in a fiber, whose limits are not known, and where `/proc` is missing nothing is
/// done; nor can it be where memory is locked.
pub fn release_unused() {
    let here = 0_u8;
    let now = ptr::from_ref(std::hint::black_box(&here)).addr();
    // Paths of mapped files need not be UTF-8.
    let maps = fs::read("/proc/self/maps").unwrap_or_default();
    let Some(unused) = unused(&String::from_utf8_lossy(&maps), now) else { return };
    // SAFETY: these pages are of this thread's own stack, and all below what it uses now: the frames of the call down to
    // here lie above `now`, and those further down end within the margin. Nobody may count on what is there.
    unsafe {
        libc::madvise(ptr::with_exposed_provenance_mut::<c_void>(unused.start), unused.len(), libc::MADV_DONTNEED);
    }
}

/// The pages of the main thread's stack that are not in use, if it has come down to `now`.
fn unused(maps: &str, now: usize) -> Option<Range<usize>> {
    let line = maps.lines().find(|line| line.ends_with(" [stack]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let stack = address(start)?..address(end)?;
    let unused = stack.start..now.saturating_sub(MARGIN) / PAGE * PAGE;
    (stack.contains(&now) && !unused.is_empty()).then_some(unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "5571c0a00000-5571c0a21000 rw-p 00000000 00:00 0                          [heap]\n\
        7ffc1a000000-7ffc1a041000 rw-p 00000000 00:00 0                          [stack]\n\
        7ffc1a0f0000-7ffc1a0f2000 r-xp 00000000 00:00 0                          [vdso]\n";

    #[test]
    fn whole_pages_below_the_margin_are_unused() {
        let expected = Some(0x7ffc_1a00_0000..0x7ffc_1a01_0000);
        assert_eq!(unused(LINES, 0x7ffc_1a03_0000), expected);
        assert_eq!(unused(LINES, 0x7ffc_1a03_0fff), expected);
    }

    #[test]
    fn a_stack_that_has_come_down_to_its_margin_has_nothing_unused() {
        assert_eq!(unused(LINES, 0x7ffc_1a02_0fff), None);
        assert_eq!(unused(LINES, 0x7ffc_1a00_0000), None);
    }

    #[test]
    fn other_memory_is_left_alone() {
        assert_eq!(unused(LINES, 0x7ffc_19ff_ffff), None);
        assert_eq!(unused(LINES, 0x7ffc_1a04_1000), None);
        assert_eq!(unused("5571c0a00000-5571c0a21000 rw-p 00000000 00:00 0   [heap]\n", 0x5571_c0a2_0000), None);
        assert_eq!(unused("what is this [stack]\n", 0), None);
    }
}
