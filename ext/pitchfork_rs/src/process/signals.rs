//! Signals that reached this process and were not looked at yet.
//!
//! Ruby's `trap` calls [`note`]: it sets a bit in private memory and nothing else. A descriptor to wake somebody up
//! with would be inherited by children, who would wake the wrong process.

use std::sync::atomic::{AtomicU32, Ordering};

static PENDING: AtomicU32 = AtomicU32::new(0);

fn bit(signal: i32) -> u32 {
    u32::try_from(signal).ok().and_then(|signal| 1u32.checked_shl(signal)).unwrap_or(0)
}

/// Notes a signal.
pub fn note(signal: i32) {
    PENDING.fetch_or(bit(signal), Ordering::Relaxed);
}

/// Whether a signal came; asking forgets it.
pub fn take(signal: i32) -> bool {
    let bit = bit(signal);
    PENDING.load(Ordering::Relaxed) & bit != 0 && PENDING.fetch_and(!bit, Ordering::Relaxed) & bit != 0
}

/// Forgets what came in before a fork: it was meant for the parent.
pub fn forget_all() {
    PENDING.store(0, Ordering::Relaxed);
}
