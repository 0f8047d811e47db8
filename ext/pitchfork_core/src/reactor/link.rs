//! What a worker has to do with the reactor.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Count, Counts, Queue, Queues};
use crate::error::Error;
use crate::message::Report;
use crate::scoreboard::Scoreboard;
use crate::sys::bell::Bell;
use crate::sys::channel::Channel;

/// A worker's ends of the queues, and what it may know of the reactor. Molds hold one for the workers they fork.
#[derive(Debug)]
pub struct Link {
    /// Where connections go that are not ready for the application.
    pub deposits: Queue,
    /// Where they come back.
    pub ready: Queue,
    /// Rings when all workers shall look for themselves what waits in queues and listeners: the one that was woken for it
    /// is busy with something else.
    pub nudge: Bell,
    counts: Counts,
    asked: AtomicBool,
}

impl Link {
    /// The workers' ends of these queues. The others are closed here.
    #[must_use]
    pub fn new(queues: Queues, counts: Counts) -> Self {
        let Queues { deposits: (deposits, _), ready: (_, ready), nudge } = queues;
        Self { deposits, ready, nudge, counts, asked: AtomicBool::new(false) }
    }

    /// Has the monitor, at the other end of `channel`, start a reactor, if there is none. It is asked once, and again
    /// when one has come and gone. What the process has asked from which this one was forked need not be asked again.
    ///
    /// Fails if the monitor cannot be told now; the next call tries again.
    pub fn want(&self, scoreboard: Scoreboard, channel: &Channel) -> Result<(), Error> {
        if scoreboard.has_reactor() {
            self.asked.store(false, Ordering::Relaxed);
        } else if !self.asked.load(Ordering::Relaxed) {
            channel.send(&Report::ReactorWanted.encode(), None)?;
            self.asked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How many requests have come out of the reactor up to now. One load, for those who have no time to wait for an event.
    #[must_use]
    pub fn handed_over(&self) -> u64 {
        self.counts.get(Count::HandedOver)
    }

    /// Whether the reactor has requests that are to come, or may have: a worker that leaves last, at a stop, waits for
    /// them.
    #[must_use]
    pub fn owes_requests(&self) -> bool {
        self.counts.get(Count::Reading) + self.counts.get(Count::Ready) > 0 || self.deposits.has_untaken()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::reactor::{Content, Parcel};
    use crate::sys::channel::Received;

    fn link() -> (Link, Counts) {
        let counts = Counts::new().unwrap();
        (Link::new(Queues::new().unwrap(), counts), counts)
    }

    /// How often it was asked.
    fn heard(monitor: &Channel) -> usize {
        let mut times = 0;
        while let Received::Message { bytes, len, .. } = monitor.receive().unwrap() {
            assert_eq!(Report::decode(&bytes[..len]).unwrap(), Report::ReactorWanted);
            times += 1;
        }
        times
    }

    #[test]
    fn a_reactor_is_asked_for_once_while_there_is_none() {
        let (link, _) = link();
        let board = Scoreboard::new(1).unwrap();
        let (monitor, worker) = Channel::pair().unwrap();
        for _ in 0..3 {
            link.want(board, &worker).unwrap();
        }
        assert_eq!(heard(&monitor), 1);
        board.set_reactor(true);
        link.want(board, &worker).unwrap();
        assert_eq!(heard(&monitor), 0);
        board.set_reactor(false);
        for _ in 0..3 {
            link.want(board, &worker).unwrap();
        }
        assert_eq!(heard(&monitor), 1);
    }

    #[test]
    fn a_monitor_that_does_not_listen_is_asked_again() {
        let (link, _) = link();
        let board = Scoreboard::new(1).unwrap();
        let (monitor, worker) = Channel::pair().unwrap();
        while worker.send(&Report::ReactorWanted.encode(), None).is_ok() {}
        assert!(link.want(board, &worker).is_err());
        heard(&monitor);
        link.want(board, &worker).unwrap();
        assert_eq!(heard(&monitor), 1);
    }

    #[test]
    fn requests_are_awaited_that_are_on_their_way_to_the_reactor() {
        let queues = Queues::new().unwrap();
        let reactor = Queue::from(queues.deposits.1.as_fd().try_clone_to_owned().unwrap());
        let link = Link::new(queues, Counts::new().unwrap());
        let (socket, _client) = UnixStream::pair().unwrap();
        let content = Content::Waiting;
        let parcel = Parcel { socket: socket.into(), peer: None, served: 0, since: 0, bytes: Vec::new(), content };
        link.deposits.send(&parcel).unwrap();
        assert!(link.owes_requests());
        reactor.receive().unwrap();
        assert!(!link.owes_requests());
    }

    #[test]
    fn requests_are_awaited_that_are_read_or_ready() {
        let (link, counts) = link();
        for (count, owed) in
            [(Count::Idle, false), (Count::Writing, false), (Count::Reading, true), (Count::Ready, true)]
        {
            counts.set(count, 1);
            assert_eq!(link.owes_requests(), owed, "{count:?}");
            counts.begin();
        }
        assert!(!link.owes_requests());
    }
}
