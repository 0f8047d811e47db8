//! Without the test harness, which runs tests on threads: it is the main thread's stack that is meant.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;

use nix::sys::mman::{MapFlags, ProtFlags, mmap};

use pitchfork_core::sys::stack;

/// Kilobytes of the stack that are in memory.
fn resident() -> usize {
    let smaps = String::from_utf8_lossy(&fs::read("/proc/self/smaps").unwrap()).into_owned();
    let mut lines = smaps.lines().skip_while(|line| !line.ends_with(" [stack]"));
    let rss = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
    rss.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Writes to some kilobytes of the stack for each step down.
fn recurse(steps: usize) -> usize {
    let frame = black_box([steps; 512]);
    if steps == 0 { 0 } else { frame[black_box(7)] - steps + 1 + recurse(steps - 1) }
}

/// Maps a file whose name is not UTF-8.
fn map_strange_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(OsStr::from_bytes(b"\xff"));
    fs::write(&path, "x").unwrap();
    let (length, flags) = (NonZeroUsize::MIN, MapFlags::MAP_PRIVATE);
    // SAFETY: a new mapping, which nobody reads.
    unsafe { mmap(None, length, ProtFlags::PROT_READ, flags, File::open(path).unwrap(), 0) }.unwrap();
}

fn main() {
    map_strange_name();
    let kept = black_box([0x5a_u8; 10_000]);
    assert_eq!(recurse(500), 500);
    let before = resident();
    assert!(before > 2_000, "{before} kB of stack in memory");

    stack::release_unused();
    let after = resident();
    assert!(after < before - 1_500, "{after} kB of {before} are still in memory");
    assert!(black_box(&kept).iter().all(|byte| *byte == 0x5a), "what is in use is as it was");

    // It can grow again.
    assert_eq!(recurse(500), 500);
    assert!(resident() > before - 100);
}
