//! What a reactor tells about itself, for everybody to read.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::sys::shared;

/// One number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Connections that wait for the first byte of a request.
    Idle,
    /// Connections of whose request something has come.
    Reading,
    /// Whole requests that wait for room in the queue of the workers.
    Ready,
    /// Connections whose response is being written.
    Writing,
    /// Connections that are about to be closed.
    Closing,
    /// Requests that were ever handed to the workers.
    HandedOver,
    /// Connections that were ever given up because their time was over.
    ClosedByDeadline,
    /// Requests that were ever answered with an error here, but for those whose time was over.
    Refused,
    /// Idle connections that were ever closed because the descriptors had run out.
    Displaced,
    /// Packets that were ever received and were no connection, or that this process had no room for, and requests that
    /// could not be sent.
    Lost,
}

impl Count {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Idle,
        Self::Reading,
        Self::Ready,
        Self::Writing,
        Self::Closing,
        Self::HandedOver,
        Self::ClosedByDeadline,
        Self::Refused,
        Self::Displaced,
        Self::Lost,
    ];

    /// Whether it tells how it is now, rather than what has been since the server began.
    #[must_use]
    pub const fn is_gauge(self) -> bool {
        matches!(self, Self::Idle | Self::Reading | Self::Ready | Self::Writing | Self::Closing)
    }
}

/// A handle on the shared numbers; copies of it refer to the same memory. Only the reactor writes.
#[derive(Clone, Copy, Debug)]
pub struct Counts(&'static [AtomicU64]);

impl Counts {
    /// Maps the numbers, all 0, to be inherited by every process forked from now on.
    pub fn new() -> Result<Self, Error> {
        Ok(Self(shared::map(Count::ALL.len())?))
    }

    /// The value of one number.
    #[must_use]
    pub fn get(self, count: Count) -> u64 {
        self.0[count as usize].load(Ordering::Relaxed)
    }

    pub(super) fn set(self, count: Count, value: usize) {
        self.0[count as usize].store(value as u64, Ordering::Relaxed);
    }

    pub(super) fn add(self, count: Count) {
        self.0[count as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn subtract(self, count: Count) {
        self.0[count as usize].fetch_sub(1, Ordering::Relaxed);
    }

    /// A reactor begins with no connection, whatever the one before it has left here; the monitor does the same when
    /// there is none any more, not even one that has still to die.
    pub fn begin(self) {
        Count::ALL.into_iter().filter(|count| count.is_gauge()).for_each(|gauge| self.set(gauge, 0));
    }
}
