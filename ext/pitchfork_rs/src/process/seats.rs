//! Where a worker takes its connections from: its share of the sockets of all, those it has to itself, and those
//! connections that it holds.

use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use pitchfork_core::children::{Kind, Millis};
use pitchfork_core::error::Error;
use pitchfork_core::listen::Listener;
use pitchfork_core::sys::packet::MOST_DESCRIPTORS;
use pitchfork_core::sys::{half_open, limits};
use pitchfork_core::turns::Turns;

use super::child::{Child, House};
use super::held::Held;
use super::watcher::Burden;
use crate::rack::connection::Connection;

/// The marks of what is neither a connection nor a listener among the epoll events; those have smaller ones.
const ORDERS: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
const NUDGE: u64 = u64::MAX - 2;
const REQUESTS: u64 = u64::MAX - 3;

/// The sockets that one worker accepts from, in an epoll instance of this process alone. Of the workers that wait for
/// the same socket only one is woken for a connection.
pub struct Seats {
    house: Rc<House>,
    nr: u32,
    epoll: Arc<Epoll>,
    /// The connections that wait here.
    held: Arc<Held>,
    /// Those of them for which there is something to do.
    turns: Turns,
    /// Where others may be.
    chances: Chances,
    /// Whether the bell has told of something that no event here tells of, and that was not found yet.
    is_nudged: bool,
    /// How many requests had come out of the reactor when that was last looked at.
    handed_over: u64,
    /// What the watcher is to know.
    burden: Arc<Burden>,
    /// Whether new connections are no longer announced.
    is_blind: bool,
    /// The shared sockets that this worker serves, by their place in the house.
    shared: Vec<usize>,
    /// The sockets that no other process has.
    private: Vec<Listener>,
    /// The socket that gave the last connection; the next one asked is its neighbour.
    cursor: usize,
    /// How often the bell had rung when the shares were last looked at.
    heard: u32,
    /// Whether there are sockets among `shared` that are others' by now.
    has_surplus: bool,
}

/// What may wait besides the connections that are held.
#[derive(Clone, Copy, Debug)]
struct Chances {
    /// There may be a new connection.
    accept: bool,
    /// There may be a request from the reactor.
    receive: bool,
    /// The reactor's requests come before new connections the next time.
    is_turn_of_reactor: bool,
}

impl Seats {
    /// Takes this worker's place; `private` are sockets of its own, which listen already.
    pub fn take(child: &Child, private: Vec<Listener>, burden: Arc<Burden>) -> Result<Self, Error> {
        let nr = if let Kind::Worker(nr) = child.post.kind { nr } else { 0 };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|errno| Error::system("epoll_create1", "a worker", errno))?;
        let epoll = Arc::new(epoll);
        watch(&epoll, "a channel", child.post.channel.as_fd(), EpollFlags::EPOLLIN, ORDERS)?;
        if let Some(bell) = &child.house.bell {
            watch(&epoll, "a bell", bell.as_fd(), EpollFlags::EPOLLIN | EpollFlags::EPOLLET, BELL)?;
        }
        for listener in &private {
            watch(&epoll, &listener.address().to_string(), listener, EpollFlags::EPOLLIN, 0)?;
        }
        let house = Rc::clone(&child.house);
        watch(&epoll, "a bell", house.link.nudge.as_fd(), EpollFlags::EPOLLIN | EpollFlags::EPOLLET, NUDGE)?;
        let alone = EpollFlags::EPOLLIN | EpollFlags::EPOLLEXCLUSIVE;
        watch(&epoll, "the reactor's queue", house.link.ready.as_fd(), alone, REQUESTS)?;
        let handed_over = house.link.handed_over();
        let held = Arc::new(Held::new(Arc::clone(&epoll)));
        burden.set_held(&held);
        let heard = house.bell.as_ref().map_or(0, |bell| bell.count());
        let mut seats = Self {
            house,
            nr,
            held,
            epoll,
            turns: Turns::default(),
            chances: Chances { accept: true, receive: true, is_turn_of_reactor: false },
            is_nudged: false,
            handed_over,
            burden,
            is_blind: false,
            shared: Vec::new(),
            private,
            cursor: 0,
            heard,
            has_surplus: false,
        };
        seats.change(true)?;
        Ok(seats)
    }

    /// Takes what has become this worker's share since it last looked, because others have come or gone.
    ///
    /// What is not its share any more is given up only if `is_idle`, which means that it has just found all its
    /// queues empty: it may be the one that was woken for a connection, and nobody else would be.
    pub fn look_around(&mut self, is_idle: bool) -> Result<(), Error> {
        let rung = self.house.bell.as_ref().map_or(0, |bell| bell.count());
        if rung == self.heard && !(is_idle && self.has_surplus) {
            return Ok(());
        }
        self.heard = rung;
        self.change(is_idle)
    }

    fn change(&mut self, may_give_up: bool) -> Result<(), Error> {
        let House { bell, scoreboard, listeners, .. } = &*self.house;
        let present = if bell.is_some() { scoreboard.ready_workers() } else { Vec::new() };
        let mut share = listeners.served_by(self.nr, &present);
        for &at in share.iter().filter(|at| !self.shared.contains(at)) {
            let listener = listeners.get(at);
            let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLEXCLUSIVE;
            watch(&self.epoll, &listener.address().to_string(), listener, flags, at as u64)?;
        }
        let surplus: Vec<usize> = self.shared.iter().filter(|at| !share.contains(at)).copied().collect();
        self.has_surplus = !may_give_up && !surplus.is_empty();
        if may_give_up {
            for at in surplus {
                let _ = self.epoll.delete(listeners.get(at));
            }
        } else {
            share.extend(surplus);
        }
        self.shared = share;
        Ok(())
    }

    /// The connections that wait here.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The connection whose turn it is: those that are held, new ones and the reactor's take turns.
    pub fn next(&mut self) -> Result<Option<Connection>, Error> {
        if self.turns.is_turn_of_held()
            && let Some(connection) = self.next_held()
        {
            return Ok(Some(connection));
        }
        match self.next_new() {
            Ok(Some(connection)) => {
                self.turns.take_new();
                Ok(Some(connection))
            }
            Ok(None) => Ok(self.next_held()),
            // Where there are too many descriptors those that are there have to be served, or none would ever go.
            Err(error) => self.next_held().map_or(Err(error), |connection| Ok(Some(connection))),
        }
    }

    fn next_new(&mut self) -> Result<Option<Connection>, Error> {
        self.chances.is_turn_of_reactor = !self.chances.is_turn_of_reactor;
        let first = if self.chances.is_turn_of_reactor { self.receive()? } else { self.accept()? };
        let found = match first {
            Some(connection) => Some(connection),
            None if self.chances.is_turn_of_reactor => self.accept()?,
            None => self.receive()?,
        };
        self.is_nudged &= found.is_some();
        Ok(found)
    }

    /// Takes a request from the reactor, if one waits.
    fn receive(&mut self) -> Result<Option<Connection>, Error> {
        // A worker that always has something to do does not wait for events.
        let handed_over = self.house.link.handed_over();
        if !self.chances.receive && handed_over == self.handed_over {
            return Ok(None);
        }
        if !limits::has_descriptors(MOST_DESCRIPTORS) {
            // Those for which there is no room would be dropped by the kernel, and the client with them.
            return Err(Error::system("recvmsg", "the reactor's queue", Errno::EMFILE));
        }
        self.handed_over = handed_over;
        let received = self.house.link.ready.receive()?;
        self.chances.receive = received.is_some();
        if received.is_some() {
            if self.chances.accept {
                // This worker may be the one that was woken for a new connection.
                self.burden.note_debt();
            }
            // Where requests never run out, no event would tell of it.
            self.chances.accept = true;
        }
        Ok(received.map(Connection::unpack))
    }

    /// Whether those that are held have to be looked at before it is anybody's turn.
    pub fn is_round_over(&self) -> bool {
        self.turns.is_round_over() && !self.held.is_empty()
    }

    /// Gives a connection that is held a turn without waiting for an event: something of it was read already.
    pub fn call_again(&mut self, mark: u64) {
        self.turns.add(mark);
    }

    fn next_held(&mut self) -> Option<Connection> {
        // One that has gone meanwhile has no turn.
        std::iter::from_fn(|| self.turns.next_held()).find_map(|mark| self.held.take(mark))
    }

    /// Takes a new connection, if one waits.
    pub fn accept(&mut self) -> Result<Option<Connection>, Error> {
        if !self.chances.accept && !self.is_blind {
            return Ok(None);
        }
        let count = self.shared.len() + self.private.len();
        for step in 1..=count {
            let at = (self.cursor + step) % count;
            let listener = match self.shared.get(at) {
                Some(&place) => self.house.listeners.get(place),
                None => &self.private[at - self.shared.len()],
            };
            if let Some((descriptor, peer)) = listener.accept()? {
                self.cursor = at;
                let is_corked = listener.is_corked();
                return Ok(Some(Connection { is_corked, ..Connection::new(descriptor, peer) }));
            }
        }
        self.chances.accept = false;
        Ok(None)
    }

    /// Looks who is ready, or waits until somebody is or `timeout` has passed; `true` if there may be an order. To be
    /// called without the GVL if there is a timeout.
    pub fn wait(&mut self, timeout: Millis) -> bool {
        let timeout = EpollTimeout::try_from(timeout).unwrap_or(EpollTimeout::NONE);
        let mut events = [EpollEvent::empty(); 64];
        let ready = self.epoll.wait(&mut events, timeout).unwrap_or(0);
        let mut has_orders = false;
        // Where nobody is held nobody looks, and new connections are found by trying. A socket is given up only after
        // that, too.
        self.chances.accept = self.held.is_empty() || self.has_surplus || self.is_nudged;
        self.chances.receive = self.is_nudged;
        self.burden.settle_debt();
        let mut queues = 0;
        for event in &events[..ready] {
            match event.data() {
                ORDERS => has_orders = true,
                mark if Held::is_mark(mark) => self.turns.add(mark),
                BELL => {}
                NUDGE => {
                    self.is_nudged = true;
                    self.chances.accept = true;
                    self.chances.receive = true;
                }
                REQUESTS => {
                    self.chances.receive = true;
                    queues += 1;
                }
                _ => {
                    self.chances.accept = true;
                    queues += 1;
                }
            }
        }
        self.turns.begin_round();
        if queues > 1 || (queues > 0 && !self.turns.is_round_over()) {
            self.burden.note_debt();
        }
        has_orders
    }

    /// Gives those a turn whose time has run out.
    pub fn call_late(&mut self, now: Millis) {
        for mark in self.held.late(now) {
            self.turns.add(mark);
        }
        self.turns.begin_round();
    }

    /// Whether the reactor has requests that are to come, or has sent some.
    pub fn are_requests_owed(&self) -> bool {
        self.house.link.owes_requests()
    }

    /// Keeps looking for requests from the reactor without waiting for events.
    pub fn look_for_requests(&mut self) {
        self.chances.receive = true;
    }

    /// Is woken for no new connection any more. What it may have been woken for already can still be taken.
    pub fn stop_watching(&mut self) {
        self.is_blind = true;
        let _ = self.epoll.delete(&self.house.link.ready);
        for &at in &self.shared {
            let _ = self.epoll.delete(self.house.listeners.get(at));
        }
        for listener in &self.private {
            let _ = self.epoll.delete(listener);
        }
    }

    /// From now on takes what waits in the sockets of all that are to be emptied, whoever served them. The monitor has
    /// seen to it that nothing new gets in there, and this sees to the private ones.
    pub fn help_out(&mut self) -> Result<(), Error> {
        self.shared = self.house.listeners.to_be_emptied();
        self.refuse_new()
    }

    /// Leaves the shared sockets to the others, and lets nobody new into the private ones.
    pub fn keep_to_private(&mut self) -> Result<(), Error> {
        self.shared.clear();
        self.refuse_new()
    }

    /// Whether there are sockets that no other process has.
    pub fn are_private(&self) -> bool {
        !self.private.is_empty()
    }

    /// Whether somebody is on the way into one of these queues, whose client may have sent a request already.
    pub fn are_awaited(&self) -> bool {
        let shared = self.shared.iter().map(|&at| self.house.listeners.get(at));
        let ports: Vec<u16> = shared.chain(&self.private).filter_map(|listener| listener.address().port()).collect();
        half_open::any(&ports)
    }

    fn refuse_new(&self) -> Result<(), Error> {
        self.private.iter().try_for_each(Listener::refuse_new)
    }
}

fn watch(epoll: &Epoll, what: &str, descriptor: impl AsFd, flags: EpollFlags, mark: u64) -> Result<(), Error> {
    match epoll.add(descriptor, EpollEvent::new(flags, mark)) {
        // From an attempt that failed on another one.
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(errno) => Err(Error::system("epoll_ctl", what.to_owned(), errno)),
    }
}
