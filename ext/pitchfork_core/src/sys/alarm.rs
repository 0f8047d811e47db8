//! Something by which one thread wakes another that waits for descriptors.

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::unistd::{read, write};

use crate::error::Error;

/// A handle on an alarm; copies of it refer to the same one.
///
/// It stays open until [`Alarm::close`], which a forked child calls: threads that held a copy do not exist there, so none
/// of them can let go of it.
#[derive(Clone, Copy, Debug)]
pub struct Alarm(RawFd);

impl Alarm {
    /// An alarm that has not rung.
    pub fn new() -> Result<Self, Error> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|errno| Error::system("eventfd", "an alarm", errno))?;
        Ok(Self(OwnedFd::from(event).into_raw_fd()))
    }

    /// Wakes whoever waits for it to become readable, now or later.
    pub fn ring(self) {
        // It fails after 2⁶⁴ of them only.
        let _ = write(self.descriptor(), &1_u64.to_ne_bytes());
    }

    /// Notes that it was heard.
    pub fn reset(self) {
        // Empty if it has not rung.
        let _ = read(self.descriptor(), &mut [0; 8]);
    }

    /// Closes it. No copy may be used any more.
    pub fn close(self) {
        // An error would mean that somebody has closed the descriptors of this process behind its back.
        let _ = nix::unistd::close(self.0);
    }

    fn descriptor<'d>(self) -> BorrowedFd<'d> {
        // SAFETY: it is open until `close`, after which no copy is used.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn is_heard(alarm: Alarm) -> bool {
        poll(&mut [PollFd::new(alarm.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO).unwrap() > 0
    }

    #[test]
    fn it_is_heard_until_it_is_reset() {
        let alarm = Alarm::new().unwrap();
        assert!(!is_heard(alarm));
        alarm.ring();
        alarm.ring();
        assert!(is_heard(alarm) && is_heard(alarm));
        alarm.reset();
        assert!(!is_heard(alarm));
        alarm.reset();
        alarm.close();
    }
}
