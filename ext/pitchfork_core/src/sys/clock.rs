//! The two clocks of this server.

use crate::children::Millis;

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for one timespec; both clocks used below exist on every Linux, so the call
    // cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

/// Milliseconds on the monotonic clock, which all processes of this machine share.
#[must_use]
pub fn monotonic() -> Millis {
    let time = read(libc::CLOCK_MONOTONIC);
    time.tv_sec.cast_unsigned() * 1_000 + time.tv_nsec.cast_unsigned() / 1_000_000
}

/// Seconds since 1970, for the `Date` field. The coarse clock is a few milliseconds late and costs a fifth.
#[must_use]
pub fn unix_seconds() -> u64 {
    read(libc::CLOCK_REALTIME_COARSE).tv_sec.cast_unsigned()
}
