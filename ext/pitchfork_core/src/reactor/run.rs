//! The reactor's loop: it waits for all connections at once, and performs what is decided about each.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::counts::Counts;
use super::machine::{Circumstances, Event, Phase};
use super::mail::Outbox;
use super::pool::{Key, Pool};
use super::queue::Queue;
use super::ration::Ration;
use super::settings::Settings;
use super::traffic::Outside;
use crate::children::{Millis, Pid, Token};
use crate::error::Error;
use crate::http::DateCache;
use crate::http::date::DATE_LENGTH;
use crate::message::{Order, Report, Text};
use crate::scoreboard::Line;
use crate::sys::channel::{Channel, Received};
use crate::sys::{alone, clock, heap, limits, process};

/// How many events are taken from the kernel at once.
const EVENTS: usize = 256;
/// How much is read from a connection before others have their turn.
const READ_SIZE: usize = 64 * 1024;
/// Descriptors that are left for what nobody has thought of.
const RESERVE: usize = 16;
/// The longest time between two signs of life, whatever the monitor's patience.
const LONGEST_PULSE: Millis = 10_000;
/// The same while the end is waited for.
const DRAINING_PULSE: Millis = 500;
/// How long connections may go on after the monitor's death, as in workers.
const ORPHAN_PATIENCE: Millis = 4_000;
/// How often a second something is said that may happen all the time: what is wrong, and what clients do.
const COMPLAINTS: u32 = 1;
const REMARKS: u32 = 10;
/// How much memory must have been freed since its peak before the heap is given back to the kernel.
const WORTH_TIDYING: usize = 1024 * 1024;

// What else is waited for. No connection has a name like these.
pub(super) const CHANNEL: u64 = u64::MAX;
pub(super) const DEATH: u64 = u64::MAX - 1;
pub(super) const DEPOSITS: u64 = u64::MAX - 2;
pub(super) const READY: u64 = u64::MAX - 3;

/// The place that a reactor was forked for.
#[derive(Clone, Copy)]
pub struct Post<'p> {
    /// The name of the spawn.
    pub token: Token,
    /// Its line on the scoreboard.
    pub line: &'static Line,
    /// Its end of its channel.
    pub channel: &'p Channel,
    /// The monitor's pid.
    pub monitor: Pid,
    /// Becomes readable at the monitor's death, where the kernel can tell.
    pub death: Option<BorrowedFd<'p>>,
    /// Within this time the monitor sees a sign of life.
    pub patience: Millis,
    /// Takes a line for the log.
    pub log: &'p dyn Fn(&str),
}

/// Waits for connections until told to leave, then until nobody else is left, and then until the last of them has left
/// too. Gives back the status to exit with: 0 if it has done as it was told, also if that was not to wait for anybody; 1
/// if it failed, or outlived the monitor and had to give connections up.
///
/// `deposits` is the receiving end, `ready` the sending one. That this process is ready is said here. It raises its limit
/// of descriptors and ignores `SIGPIPE` for good.
#[must_use]
pub fn run(post: Post<'_>, deposits: &Queue, ready: &Queue, settings: &Settings, counts: Counts) -> i32 {
    counts.begin();
    let served = Reactor::new(post, deposits, ready, settings, counts).and_then(|mut reactor| reactor.serve());
    counts.begin();
    served.unwrap_or_else(|error| {
        (post.log)(&format!("the reactor gives up: {error}"));
        1
    })
}

/// Those who send connections and take requests, at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// Nobody says anything about them.
    Unknown,
    /// They may still need this process. The monitor says when there are none.
    Here,
    /// There are none.
    Gone,
}

pub(super) struct Reactor<'r> {
    pub(super) post: Post<'r>,
    pub(super) deposits: &'r Queue,
    pub(super) ready: &'r Queue,
    pub(super) settings: &'r Settings,
    pub(super) counts: Counts,
    pub(super) epoll: Epoll,
    pub(super) pool: Pool<Outside>,
    pub(super) outbox: Outbox,
    /// What connections are read into, one after the other.
    pub(super) scratch: Vec<u8>,
    /// How many descriptors connections may have, and how many they have.
    pub(super) room: usize,
    pub(super) held: usize,
    /// Whether connections are taken from the queue of deposits.
    pub(super) listening: bool,
    /// Until then none are, because that has failed.
    pub(super) deaf_until: Option<Millis>,
    pub(super) now: Millis,
    date: DateCache,
    pub(super) date_now: [u8; DATE_LENGTH],
    pub(super) draining: bool,
    others: Others,
    /// It is not to be waited for.
    over: bool,
    /// Nobody is there to kill this process any more, so that it has to do so itself at this time.
    orphaned_until: Option<Millis>,
    next_pulse: Millis,
    complaints: Ration,
    remarks: Ration,
    /// The most memory that connections had since the heap was tidied.
    peak: usize,
}

impl<'r> Reactor<'r> {
    fn new(
        post: Post<'r>,
        deposits: &'r Queue,
        ready: &'r Queue,
        settings: &'r Settings,
        counts: Counts,
    ) -> Result<Self, Error> {
        process::ignore_broken_pipes();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|errno| Error::system("epoll_create1", "the reactor", errno))?;
        let limit = limits::raise_descriptors();
        let others = limits::open_descriptors().unwrap_or(64);
        let mut reactor = Self {
            post,
            deposits,
            ready,
            settings,
            counts,
            epoll,
            pool: Pool::new(counts),
            outbox: Outbox::default(),
            scratch: vec![0; READ_SIZE],
            room: limit.saturating_sub(others + RESERVE),
            held: 0,
            listening: false,
            deaf_until: None,
            now: clock::monotonic(),
            date: DateCache::default(),
            date_now: [0; DATE_LENGTH],
            draining: false,
            others: Others::Unknown,
            over: false,
            orphaned_until: None,
            next_pulse: 0,
            complaints: Ration::new(COMPLAINTS),
            remarks: Ration::new(REMARKS),
            peak: 0,
        };
        reactor.begin()?;
        Ok(reactor)
    }

    fn begin(&mut self) -> Result<(), Error> {
        let watch = |descriptor, data| {
            self.epoll
                .add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, data))
                .map_err(|errno| Error::system("epoll_ctl", "the reactor", errno))
        };
        watch(self.post.channel.as_fd(), CHANNEL)?;
        if let Some(death) = self.post.death {
            watch(death, DEATH)?;
        }
        self.take_time();
        self.listen();
        self.post.line.set_ready();
        match self.post.channel.send(&Report::Ready.encode(), None) {
            // What is to be read there says what has happened.
            Err(error) if !matches!(error.errno(), Some(libc::EPIPE | libc::ECONNRESET)) => Err(error),
            _ => Ok(()),
        }
    }

    fn serve(&mut self) -> Result<i32, Error> {
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            let count = match self.epoll.wait(&mut events, self.timeout()) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(errno) => return Err(Error::system("epoll_wait", "the reactor", errno)),
            };
            self.take_time();
            for event in &events[..count] {
                match event.data() {
                    CHANNEL => self.carry_out_orders(),
                    DEATH => self.be_orphaned(),
                    // Seen to below, when all others have had their turn.
                    DEPOSITS => {}
                    READY => self.outbox.notice_room(),
                    number => self.attend(Key::from_number(number)),
                }
            }
            // After the events, so that bytes which came in time count even if this process did not run for a while.
            while let Some(key) = self.pool.due(self.now) {
                self.tell(key, Event::Due);
            }
            let deposits = events[..count].iter().any(|event| event.data() == DEPOSITS);
            let all_taken = (deposits || self.draining) && self.take_deposits();
            if self.others == Others::Gone {
                self.give_up_requests();
            }
            self.send_ready();
            self.listen();
            self.peak = self.peak.max(self.pool.memory());
            if self.now >= self.next_pulse {
                self.pulse();
            }
            let empty = self.pool.is_empty() && self.outbox.is_empty();
            debug_assert!(!empty || self.held == 0, "{} descriptors of nobody", self.held);
            let served = all_taken && empty;
            if self.over || (self.draining && self.others != Others::Here && served) {
                return Ok(0);
            }
            if self.orphaned_until.is_some_and(|end| end <= self.now) {
                return Ok(1);
            }
        }
    }

    pub(super) fn circumstances<'c>(&self, date: &'c [u8; DATE_LENGTH]) -> Circumstances<'c>
    where
        'r: 'c,
    {
        Circumstances { settings: self.settings, now: self.now, date, draining: self.draining }
    }

    fn take_time(&mut self) {
        self.now = clock::monotonic();
        self.date_now = *self.date.get(clock::unix_seconds());
    }

    fn timeout(&self) -> EpollTimeout {
        let deadlines = [self.pool.first_deadline(), self.outbox.retry(), self.orphaned_until, self.deaf_until];
        let first = deadlines.into_iter().flatten().fold(self.next_pulse, Millis::min);
        EpollTimeout::try_from(first.saturating_sub(clock::monotonic())).unwrap_or(EpollTimeout::MAX)
    }

    /// Gives a sign of life, and sees to what needs to be seen to now and then.
    fn pulse(&mut self) {
        let longest = if self.draining { DRAINING_PULSE } else { LONGEST_PULSE };
        self.next_pulse = self.now + (self.post.patience / 2).clamp(1, longest);
        self.post.line.set_deadline(self.now + self.post.patience);
        if !process::is_child_of(self.post.monitor) {
            self.be_orphaned();
        } else if !self.post.line.belongs_to(self.post.token) {
            self.drain();
        }
        let memory = self.pool.memory();
        if self.peak > 2 * memory + WORTH_TIDYING {
            heap::tidy();
            self.peak = memory;
        }
    }

    fn carry_out_orders(&mut self) {
        loop {
            match self.post.channel.receive() {
                Ok(Received::Empty) => return,
                Ok(Received::Message { bytes, len, descriptor }) => match Order::decode(&bytes[..len]) {
                    Ok(Order::Leave { drain: true }) => {
                        if self.others == Others::Unknown {
                            self.others = Others::Here;
                        }
                        self.drain();
                    }
                    Ok(Order::Leave { drain: false }) => self.over = true,
                    Ok(Order::Conclude) => {
                        self.others = Others::Gone;
                        self.drain();
                    }
                    Ok(Order::ReopenLogs) => self.reopen_log(descriptor),
                    Ok(order) => {
                        (self.post.log)(&format!("the reactor got an order it cannot carry out: {order:?}"));
                    }
                    Err(error) => (self.post.log)(&format!("the reactor got no order: {error}")),
                },
                // The monitor is gone, or has given this process up.
                Ok(Received::Closed) => return self.stop_hearing(),
                Err(error) => {
                    (self.post.log)(&format!("the reactor cannot hear its monitor: {error}"));
                    return self.stop_hearing();
                }
            }
        }
    }

    /// Panics tell of themselves on standard error, which is the one log that this process has open.
    fn reopen_log(&self, descriptor: Option<OwnedFd>) {
        if let Some(Err(error)) = descriptor.map(alone::replace_standard_error) {
            (self.post.log)(&format!("the reactor cannot reopen its log: {error}"));
        }
    }

    /// Closes what would only come to an end in a worker.
    fn give_up_requests(&mut self) {
        for key in self.pool.keys() {
            let phase = self.pool.get_mut(key).map(|(connection, _)| connection.phase());
            if matches!(phase, Some(Phase::Idle | Phase::Reading | Phase::Ready)) {
                self.tell(key, Event::Broken);
            }
        }
        self.drop_ready();
    }

    fn stop_hearing(&mut self) {
        let _ = self.epoll.delete(self.post.channel);
        // Nobody will say so.
        self.others = Others::Unknown;
        self.drain();
    }

    fn be_orphaned(&mut self) {
        if self.orphaned_until.is_none() {
            self.orphaned_until = Some(self.now + ORPHAN_PATIENCE);
            if let Some(death) = self.post.death {
                let _ = self.epoll.delete(death);
            }
            self.drain();
        }
    }

    /// Logs what may happen all the time, but not all the time.
    pub(super) fn complain(&mut self, line: &str) {
        if self.complaints.take(self.now) {
            (self.post.log)(line);
        }
    }

    /// Says what whoever looks into something may want to know. If the monitor does not listen now, it is not said.
    pub(super) fn remark(&mut self, line: &str) {
        if self.remarks.take(self.now) {
            let _ = self.post.channel.send(&Report::Remark(Text::new(line)).encode(), None);
        }
    }

    fn drain(&mut self) {
        if !self.draining {
            self.draining = true;
            self.next_pulse = self.now;
            for key in self.pool.keys() {
                self.hear_out(key);
                self.tell(key, Event::Drain);
            }
        }
    }
}
