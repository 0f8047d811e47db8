//! Where a worker takes its connections from: its share of the sockets of all, and those it has to itself.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use pitchfork_core::children::{Kind, Millis};
use pitchfork_core::error::Error;
use pitchfork_core::listen::Listener;
use pitchfork_core::sys::half_open;

use super::child::{Child, House};

/// The marks of the channel and of the bell among the epoll events; listeners have smaller ones.
const ORDERS: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// The sockets that one worker accepts from, in an epoll instance of this process alone. Of the workers that wait for
/// the same socket only one is woken for a connection.
pub struct Seats {
    house: Rc<House>,
    nr: u32,
    epoll: Epoll,
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

impl Seats {
    /// Takes this worker's place; `private` are sockets of its own, which listen already.
    pub fn take(child: &Child, private: Vec<Listener>) -> Result<Self, Error> {
        let nr = if let Kind::Worker(nr) = child.post.kind { nr } else { 0 };
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|errno| Error::system("epoll_create1", "a worker", errno))?;
        watch(&epoll, "a channel", child.post.channel.as_fd(), EpollFlags::EPOLLIN, ORDERS)?;
        if let Some(bell) = &child.house.bell {
            watch(&epoll, "a bell", bell.as_fd(), EpollFlags::EPOLLIN | EpollFlags::EPOLLET, BELL)?;
        }
        for listener in &private {
            watch(&epoll, &listener.address().to_string(), listener, EpollFlags::EPOLLIN, 0)?;
        }
        let house = Rc::clone(&child.house);
        let heard = house.bell.as_ref().map_or(0, |bell| bell.count());
        let mut seats = Self { house, nr, epoll, shared: Vec::new(), private, cursor: 0, heard, has_surplus: false };
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

    /// Takes one connection, if one waits.
    pub fn accept(&mut self) -> Result<Option<(OwnedFd, Option<IpAddr>)>, Error> {
        let count = self.shared.len() + self.private.len();
        for step in 1..=count {
            let at = (self.cursor + step) % count;
            let listener = match self.shared.get(at) {
                Some(&place) => self.house.listeners.get(place),
                None => &self.private[at - self.shared.len()],
            };
            if let Some(connection) = listener.accept()? {
                self.cursor = at;
                return Ok(Some(connection));
            }
        }
        Ok(None)
    }

    /// Waits until there is something to do, or until `timeout` has passed; `true` if it may be an order. To be called
    /// without the GVL.
    pub fn wait(&self, timeout: Millis) -> bool {
        let timeout = EpollTimeout::try_from(timeout).unwrap_or(EpollTimeout::NONE);
        let mut events = [EpollEvent::empty(); 8];
        let ready = self.epoll.wait(&mut events, timeout).unwrap_or(0);
        events[..ready].iter().any(|event| event.data() == ORDERS)
    }

    /// Is woken for nothing any more. What it may have been woken for already can still be taken.
    pub fn stop_watching(&self) {
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
