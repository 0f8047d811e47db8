//! Signals that reached this process and were not looked at yet.
//!
//! Ruby's `trap` calls [`note`]: it sets a bit in private memory and nothing else. A descriptor to wake somebody up
//! with would be inherited by children, who would wake the wrong process.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use pitchfork_core::children::Pid;
use pitchfork_core::sys::process;

use super::watcher;

static PENDING: AtomicU32 = AtomicU32::new(0);

fn bit(signal: i32) -> u32 {
    u32::try_from(signal).ok().and_then(|signal| 1u32.checked_shl(signal)).unwrap_or(0)
}

/// The monitor of this child; 0 in the monitor itself.
static MONITOR: AtomicI32 = AtomicI32::new(0);

/// Notes a signal.
///
/// `SIGTERM` is also what the kernel sends at the monitor's death. A child that is inside a hook then, or a mold, which
/// has no watcher, must not outlive it for long.
pub fn note(signal: i32) {
    PENDING.fetch_or(bit(signal), Ordering::Relaxed);
    let monitor = MONITOR.load(Ordering::Relaxed);
    if signal == libc::SIGTERM && monitor != 0 && !process::is_child_of(monitor) {
        watcher::end_soon();
    }
}

/// Whether a signal came, and was not taken.
pub fn is_pending(signal: i32) -> bool {
    PENDING.load(Ordering::Relaxed) & bit(signal) != 0
}

/// Whether a signal came; asking forgets it.
pub fn take(signal: i32) -> bool {
    let bit = bit(signal);
    PENDING.load(Ordering::Relaxed) & bit != 0 && PENDING.fetch_and(!bit, Ordering::Relaxed) & bit != 0
}

/// Forgets what came in before a fork: it was meant for the parent. This is a child of `monitor` now.
pub fn begin_child(monitor: Pid) {
    PENDING.store(0, Ordering::Relaxed);
    MONITOR.store(monitor, Ordering::Relaxed);
}
