//! Something that one process rings and all others hear, each for itself.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

use super::shared;
use crate::error::Error;

/// A bell, to be inherited by every process forked from now on.
///
/// A busy process asks how often it has rung, which is one load. One that sleeps in epoll(7) has the descriptor among
/// those it waits for, edge-triggered: nobody reads it, so each of them is woken, each time.
#[derive(Debug)]
pub struct Bell {
    count: &'static AtomicU32,
    event: EventFd,
}

impl Bell {
    /// A bell that has not rung.
    pub fn new() -> Result<Self, Error> {
        let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|errno| Error::system("eventfd", "a bell", errno))?;
        Ok(Self { count: &shared::map::<AtomicU32>(1)?[0], event })
    }

    /// Rings.
    pub fn ring(&self) {
        self.count.fetch_add(1, Ordering::Release);
        // It fails after 2⁶⁴ of them only.
        let _ = self.event.write(1);
    }

    /// How often it has rung.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

    #[test]
    fn everybody_hears_each_ring_once() {
        let bell = Bell::new().unwrap();
        let hearers: Vec<Epoll> = (0..2)
            .map(|_| {
                let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
                epoll.add(&bell, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0)).unwrap();
                epoll
            })
            .collect();
        let heard = |epoll: &Epoll| epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::ZERO).unwrap();
        assert_eq!(hearers.iter().map(heard).collect::<Vec<_>>(), [0, 0]);
        for round in 1..3 {
            bell.ring();
            assert_eq!(hearers.iter().map(heard).collect::<Vec<_>>(), [1, 1]);
            assert_eq!(hearers.iter().map(heard).collect::<Vec<_>>(), [0, 0]);
            assert_eq!(bell.count(), round);
        }
    }
}
