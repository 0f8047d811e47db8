//! The reactor's dealings with the two queues.

use std::collections::VecDeque;
use std::fs::File;
use std::net::Shutdown;

use nix::sys::epoll::{EpollEvent, EpollFlags};
use socket2::{SockRef, Socket};

use super::counts::Count;
use super::incoming::Buffered;
use super::machine::{Connection, Event, Origin};
use super::outgoing::Outgoing;
use super::parcel::{Content, FilePart, Parcel, Rest, StoredBody};
use super::pool::Key;
use super::queue::SendError;
use super::run::{DEPOSITS, READY, Reactor};
use super::traffic::Outside;
use crate::children::Millis;
use crate::error::Error;
use crate::sys::packet::MOST_DESCRIPTORS;

/// How many connections are taken before others have their turn.
const DEPOSITS_AT_ONCE: usize = 64;
/// After this time a full queue is tried again. The kernel tells of room only when a quarter of the queue is left, and
/// not at all when something else than the queue was full.
const PAUSE: Millis = 20;
/// After this time deposits are taken again if that has failed.
const LONG_PAUSE: Millis = 1_000;

/// Whole requests that wait for room in the queue, in their order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    parcels: VecDeque<Parcel>,
    retry: Option<Millis>,
    watched: bool,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    /// Notes that the kernel has told of room.
    pub(super) fn notice_room(&mut self) {
        self.retry = None;
    }

    /// When the queue is to be tried again if nobody tells of room before.
    pub(super) fn retry(&self) -> Option<Millis> {
        self.retry
    }
}

impl Reactor<'_> {
    /// Takes connections from the queue, as long as there are descriptors for them. Says whether nothing is left there.
    pub(super) fn take_deposits(&mut self) -> bool {
        for _ in 0..DEPOSITS_AT_ONCE {
            if !self.make_room(MOST_DESCRIPTORS) {
                self.complain("the reactor has as many connections as it may have descriptors");
                self.stop_listening();
                return false;
            }
            match self.deposits.receive() {
                Ok(Some(parcel)) => self.adopt(parcel),
                Ok(None) => return true,
                Err(Error::QueueClosed) => {
                    // Monitor and workers are gone, and none of them comes back.
                    self.deaf_until = Some(Millis::MAX);
                    self.stop_listening();
                    return true;
                }
                Err(error @ Error::Parcel(_)) => {
                    self.lose(&format!("the reactor could not take a connection: {error}"));
                }
                Err(error) => {
                    self.complain(&format!("the reactor could not take a connection: {error}"));
                    // It may be better later.
                    self.deaf_until = Some(self.now + LONG_PAUSE);
                    self.stop_listening();
                    return false;
                }
            }
        }
        false
    }

    fn adopt(&mut self, parcel: Parcel) {
        let Parcel { socket, peer, served, since, bytes, content } = parcel;
        let origin = Origin { peer, served, since };
        let (connection, file) = match content {
            Content::Waiting => (Connection::waiting(origin, bytes), None),
            Content::Response { rest: Rest { before, file, after }, then } => {
                let part = file.as_ref().map(|part| (part.offset, part.length));
                let response = Outgoing::new(before, part, after, then);
                (Connection::writing(origin, bytes, response), file.map(|FilePart { file, .. }| File::from(file)))
            }
            Content::Close => (Connection::ending(origin), None),
            // Nobody sends one here. What it would mean is not known.
            Content::Request { .. } => return self.lose("the reactor got a request that belongs to a worker"),
        };
        let socket = Socket::from(socket);
        // The application may have had it, or a program it has started. One call that blocks would stop everybody.
        if let Err(error) = socket.set_nonblocking(true) {
            return self.lose(&format!("the reactor could not take a connection: {error}"));
        }
        let outside = Outside::new(socket, file);
        self.held += outside.descriptors();
        let key = self.pool.insert(connection, outside);
        if self.draining {
            self.hear_out(key);
        }
        self.tell(key, Event::Arrived);
    }

    /// Takes note that a connection is gone, through no fault of its client.
    fn lose(&mut self, why: &str) {
        self.counts.add(Count::Lost);
        self.complain(why);
    }

    /// Gets a whole request ready to be sent.
    pub(super) fn hand_over(&mut self, key: Key) {
        let Some((connection, outside)) = self.take(key) else { return };
        let Some(request) = connection.into_request() else { return self.release(outside.descriptors()) };
        let Outside { socket, file, .. } = outside;
        let body = match (request.body, file) {
            (None, _) => None,
            (Some(Buffered::Memory(body)), _) => Some(StoredBody::Memory(body)),
            (Some(Buffered::File(length)), Some(file)) => Some(StoredBody::File { file: file.into(), length }),
            // Without it, the worker would take for a body what comes behind it.
            (Some(Buffered::File(_)), None) => {
                self.release(1);
                return self.lose("the reactor has lost a request body");
            }
        };
        let Origin { peer, served, since } = request.origin;
        let content = Content::Request { body };
        let socket = socket.into();
        self.outbox.parcels.push_back(Parcel { socket, peer, served, since, bytes: request.bytes, content });
    }

    /// Sends whole requests to the workers, until there are none or there is no room.
    pub(super) fn send_ready(&mut self) {
        if self.outbox.retry.is_some_and(|retry| retry > self.now) {
            return self.counts.set(Count::Ready, self.outbox.parcels.len());
        }
        self.outbox.retry = None;
        while let Some(parcel) = self.outbox.parcels.pop_front() {
            match self.ready.send(&parcel) {
                Ok(()) => {
                    self.counts.add(Count::HandedOver);
                    self.release(parcel.descriptors());
                }
                Err(SendError::Full) => {
                    self.outbox.parcels.push_front(parcel);
                    self.outbox.retry = Some(self.now + PAUSE);
                    break;
                }
                // It would fail again, and the others shall not wait for it.
                Err(SendError::Failed(error)) => {
                    self.give_up(&parcel);
                    self.lose(&format!("the reactor could not hand a request over: {error}"));
                }
            }
        }
        self.watch_ready(self.outbox.retry.is_some());
        if self.outbox.is_empty() {
            self.outbox.parcels.shrink_to(64);
        }
        self.counts.set(Count::Ready, self.outbox.parcels.len());
    }

    /// Closes the connections whose requests nobody will take.
    pub(super) fn drop_ready(&mut self) {
        while let Some(parcel) = self.outbox.parcels.pop_front() {
            self.give_up(&parcel);
        }
    }

    fn give_up(&mut self, parcel: &Parcel) {
        // The client sees the end even if somebody else has the connection open.
        let _ = SockRef::from(&parcel.socket).shutdown(Shutdown::Both);
        self.release(parcel.descriptors());
    }

    /// Only while there is something to send: each worker that takes something makes room, and would wake this process.
    fn watch_ready(&mut self, wanted: bool) {
        if wanted == self.outbox.watched {
            return;
        }
        // Once for each time that room is made: with less of it than is needed it would be told of all the time.
        let event = EpollEvent::new(EpollFlags::EPOLLOUT | EpollFlags::EPOLLET, READY);
        let done = if wanted { self.epoll.add(self.ready, event) } else { self.epoll.delete(self.ready) };
        self.outbox.watched = wanted && done.is_ok();
    }

    /// Frees so many descriptors at the expense of those that have been idle longest; says whether there were enough.
    pub(super) fn make_room(&mut self, descriptors: usize) -> bool {
        while self.held + descriptors > self.room {
            let Some(key) = self.pool.longest_idle() else { return false };
            self.hear_out(key);
            self.tell(key, Event::Displaced);
        }
        true
    }

    pub(super) fn release(&mut self, descriptors: usize) {
        debug_assert!(self.held >= descriptors, "{descriptors} of {}", self.held);
        self.held -= descriptors;
    }

    /// Takes connections again, if there is room or can be.
    pub(super) fn listen(&mut self) {
        if self.listening || self.deaf_until.is_some_and(|end| end > self.now) {
            return;
        }
        self.deaf_until = None;
        if self.held + MOST_DESCRIPTORS <= self.room || self.pool.longest_idle().is_some() {
            let event = EpollEvent::new(EpollFlags::EPOLLIN, DEPOSITS);
            self.listening = self.epoll.add(self.deposits, event).is_ok();
        }
    }

    fn stop_listening(&mut self) {
        if std::mem::take(&mut self.listening) {
            let _ = self.epoll.delete(self.deposits);
        }
    }
}
