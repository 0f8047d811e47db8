//! The connections that a worker holds while there is nothing to do for them: those that wait for their next request,
//! and those of which no whole request has come yet.
//!
//! Each has a mark in the worker's epoll instance, which it keeps for as long as it is here, so that waiting costs it no
//! system call of its own. A mark is never used twice: an event of a connection that has gone meanwhile finds nobody.
//! What is held may be taken out by another thread; what the worker has taken to serve it cannot.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use pitchfork_core::children::Millis;

use crate::rack::connection::Connection;

/// How many a worker holds. Each of them waits when the worker is busy.
const MOST: usize = 256;
/// Marks are above those of listeners and below those of the channel and the bell.
const MARK: u64 = 1 << 62;
/// How much of a mark is the place; the rest says whose it is.
const PLACE_BITS: u32 = 16;

/// The connections, and the epoll instance that knows them.
pub struct Held {
    epoll: Arc<Epoll>,
    set: Mutex<Set>,
    /// How many places are taken, also by those that are being served: to be read without the lock.
    taken: AtomicUsize,
}

#[derive(Default)]
struct Set {
    places: Vec<Place>,
    free: Vec<usize>,
    /// Nobody has to go before this time.
    next_deadline: Option<Millis>,
    marks_given: u64,
}

/// Where one connection is, or is expected back.
#[derive(Default)]
struct Place {
    mark: u64,
    waiting: Option<(Connection, Millis)>,
}

impl Held {
    /// None yet.
    pub fn new(epoll: Arc<Epoll>) -> Self {
        Self { epoll, set: Mutex::default(), taken: AtomicUsize::new(0) }
    }

    /// Whether a mark is that of a connection.
    pub fn is_mark(mark: u64) -> bool {
        (MARK..2 * MARK).contains(&mark)
    }

    /// Whether nobody is here, or expected back.
    pub fn is_empty(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == 0
    }

    /// Holds a connection until something comes on it, or until its deadline, under the mark that is given. Gives it back
    /// if that cannot be.
    pub fn hold(&self, connection: Connection, deadline: Millis) -> Result<u64, Connection> {
        self.hold_for(connection, EpollFlags::EPOLLIN, deadline)
    }

    /// Holds a connection until its deadline, whatever comes on it but its end: what is there is not for this process to
    /// read. It must have no place here. Gives it back if that cannot be.
    pub fn shelve(&self, connection: Connection, deadline: Millis) -> Result<u64, Connection> {
        self.hold_for(connection, EpollFlags::EPOLLONESHOT, deadline)
    }

    /// `flags` are for one that has no place here yet.
    fn hold_for(&self, mut connection: Connection, flags: EpollFlags, deadline: Millis) -> Result<u64, Connection> {
        let mut set = self.set();
        let mark = match connection.mark {
            Some(mark) => mark,
            None if set.is_full() => return Err(connection),
            None => {
                let mark = set.next_mark();
                // Level-triggered: what came before is reported as well.
                if self.epoll.add(&*connection.socket, EpollEvent::new(flags, mark)).is_err() {
                    return Err(connection);
                }
                set.occupy(mark);
                self.taken.fetch_add(1, Ordering::Relaxed);
                connection.mark = Some(mark);
                mark
            }
        };
        set.next_deadline = Some(set.next_deadline.map_or(deadline, |next| next.min(deadline)));
        if let Some(place) = set.places.get_mut(place_of(mark)) {
            place.waiting = Some((connection, deadline));
        }
        Ok(mark)
    }

    /// Takes a connection to serve it. It keeps its place; [`Self::hold`] or [`Self::forget`] follows.
    pub fn take(&self, mark: u64) -> Option<Connection> {
        let mut set = self.set();
        let place = set.places.get_mut(place_of(mark)).filter(|place| place.mark == mark)?;
        place.waiting.take().map(|(connection, _)| connection)
    }

    /// Gives up the place of a connection that was taken to be served, if it has one. To be called before it is closed:
    /// a copy of its descriptor that somebody else has would keep it in the epoll set.
    pub fn forget(&self, connection: &mut Connection) {
        if let Some(mark) = connection.mark.take() {
            self.vacate(&mut self.set(), mark, connection);
        }
    }

    /// Takes out for good those that wait here and of which `wanted` is true.
    pub fn take_out(&self, wanted: impl Fn(&Connection) -> bool) -> Vec<Connection> {
        let mut set = self.set();
        let mut out = Vec::new();
        for place in 0..set.places.len() {
            let waiting = &mut set.places[place].waiting;
            let Some((mut connection, _)) = waiting.take_if(|(connection, _)| wanted(connection)) else { continue };
            if let Some(mark) = connection.mark.take() {
                self.vacate(&mut set, mark, &connection);
            }
            out.push(connection);
        }
        out
    }

    /// Takes out for good one of those that wait here. Any thread may do so.
    pub fn take_one_out(&self) -> Option<Connection> {
        let mut set = self.set();
        let (mut connection, _) = set.places.iter_mut().find_map(|place| place.waiting.take())?;
        if let Some(mark) = connection.mark.take() {
            self.vacate(&mut set, mark, &connection);
        }
        Some(connection)
    }

    /// The marks of those whose deadline has passed.
    pub fn late(&self, now: Millis) -> Vec<u64> {
        let mut set = self.set();
        if set.next_deadline.is_none_or(|next| now < next) {
            return Vec::new();
        }
        let waiting = || set.places.iter().filter_map(|place| Some((place.mark, place.waiting.as_ref()?.1)));
        let late = waiting().filter(|&(_, deadline)| deadline <= now).map(|(mark, _)| mark).collect();
        let next = waiting().map(|(_, deadline)| deadline).filter(|&deadline| deadline > now).min();
        set.next_deadline = next;
        late
    }

    /// Nobody is late before this time.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.set().next_deadline
    }

    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn vacate(&self, set: &mut Set, mark: u64, connection: &Connection) {
        let _ = self.epoll.delete(&*connection.socket);
        set.places[place_of(mark)] = Place::default();
        set.free.push(place_of(mark));
        if self.taken.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Nobody looks for those who are late where nobody is.
            set.next_deadline = None;
        }
    }
}

fn place_of(mark: u64) -> usize {
    usize::try_from(mark & ((1 << PLACE_BITS) - 1)).unwrap_or(usize::MAX)
}

impl Set {
    fn is_full(&self) -> bool {
        self.free.is_empty() && self.places.len() >= MOST
    }

    /// The mark of whoever comes next.
    fn next_mark(&mut self) -> u64 {
        let place = self.free.last().copied().unwrap_or(self.places.len());
        self.marks_given += 1;
        MARK | (self.marks_given << PLACE_BITS) & (MARK - 1) | place as u64
    }

    fn occupy(&mut self, mark: u64) {
        if self.free.pop().is_none() {
            self.places.push(Place::default());
        }
        self.places[place_of(mark)].mark = mark;
    }
}
