//! The worker's one thread besides the main one: it sees what the main thread, inside the application, cannot.
//!
//! It waits without the GVL, and holds no lock while it waits, so a fork need not catch it at a bad moment. It looks at
//! the clock once per soft timeout while nothing is late, since a request that begins later is due later; and every few
//! milliseconds as long as there is something that should not wait for a busy worker.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use magnus::typed_data::Obj;
use magnus::value::Opaque;
use magnus::{Error, Ruby, Value};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pitchfork_core::children::{Millis, Pid};
use pitchfork_core::error::Error as CoreError;
use pitchfork_core::reactor::Link;
use pitchfork_core::scoreboard::Scoreboard;
use pitchfork_core::sys::alarm::Alarm;
use pitchfork_core::sys::{clock, process};

use super::child::House;
use super::held::Held;
use super::{clockwork, outlet};
use crate::ruby_api::request_timeout::RequestTimeout;
use crate::vm::gvl;

/// How long the application may go on after the monitor's death.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(4);

/// A worker that has been in the application for so long gives away whom else it should serve.
const IMPATIENCE: Millis = 5;
/// How long this goes on being looked for after the last connection has gone: its next one may come soon.
const AFTERGLOW: Millis = 100;

/// What a worker shares with its watcher: that which others can serve, should the worker be busy.
pub struct Burden {
    alarm: Alarm,
    /// Whether the watcher looks every few milliseconds.
    is_watched: AtomicBool,
    /// Whether this worker may be the one that was woken for something that it has not looked at yet.
    may_owe_others: AtomicBool,
    /// Not kept alive from here: in a forked child nobody would ever let go of it.
    held: Mutex<Weak<Held>>,
}

impl Burden {
    /// Nothing yet.
    pub fn new() -> Result<Arc<Self>, CoreError> {
        let held = Mutex::default();
        let (is_watched, may_owe_others) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Arc::new(Self { alarm: Alarm::new()?, is_watched, may_owe_others, held }))
    }

    /// These connections are to be given away.
    pub fn set_held(&self, held: &Arc<Held>) {
        *self.lock() = Arc::downgrade(held);
    }

    /// There is a connection that should not wait for this worker. A system call only if there was none for a while.
    pub fn watch(&self) {
        if !self.is_watched.swap(true, Ordering::AcqRel) {
            self.alarm.ring();
        }
    }

    /// This worker was woken for several things at once, of which it does one after the other.
    pub fn note_debt(&self) {
        self.may_owe_others.store(true, Ordering::Release);
        self.watch();
    }

    /// This worker looks for itself again.
    pub fn settle_debt(&self) {
        self.may_owe_others.store(false, Ordering::Release);
    }

    /// Keeps the watcher from touching anything, for a fork.
    pub fn lock(&self) -> MutexGuard<'_, Weak<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of what a forked child cannot use.
    pub fn close(&self) {
        self.alarm.close();
    }
}

/// Starts the watcher of this worker.
pub fn start(ruby: &Ruby, house: &House, worker: Value, timeout: Obj<RequestTimeout>, burden: Arc<Burden>) {
    let server = house.server;
    let soft_timeout = house.settings.soft_timeout;
    let (monitor, death, scoreboard) = (house.monitor, house.death.clone(), house.scoreboard);
    let link = Arc::clone(&house.link);
    let mut watch = Watch { monitor, death, soft_timeout, is_orphan: false, scoreboard, link, burden, burdened_at: 0 };
    // The main thread keeps both where they are for as long as this process has this role.
    let (worker, timeout) = (Opaque::from(worker), Opaque::from(timeout));
    ruby.thread_create_from_fn(move |ruby: &Ruby| -> Result<(), Error> {
        loop {
            // The request may have ended while this thread waited for the GVL.
            if gvl::without(|| watch.wait()).is_some() && is_late(clock::monotonic()) {
                clockwork::condemn();
                let exit = server.call(ruby, "soft_timeout", (ruby.get_inner(worker), ruby.get_inner(timeout)));
                clockwork::execute();
                exit?;
            }
            ruby.thread_check_ints()?;
        }
    });
}

fn is_late(now: Millis) -> bool {
    (1..=now).contains(&clockwork::soft_deadline())
}

struct Watch {
    monitor: Pid,
    death: Option<Arc<OwnedFd>>,
    soft_timeout: Millis,
    is_orphan: bool,
    scoreboard: Scoreboard,
    link: Arc<Link>,
    burden: Arc<Burden>,
    /// When there last was something that should not wait.
    burdened_at: Millis,
}

impl Watch {
    /// Waits until a request is late, or about as long as it takes one to become so, and relieves a busy worker
    /// meanwhile. It returns early if Ruby wants something of this thread.
    fn wait(&mut self) {
        loop {
            let now = clock::monotonic();
            let wait = match clockwork::soft_deadline() {
                0 => self.soft_timeout,
                deadline => deadline.saturating_sub(now),
            };
            let is_watching = self.is_watching(now);
            let interrupted = self.wait_for_events(if is_watching { wait.min(IMPATIENCE) } else { wait });
            let now = clock::monotonic();
            if is_watching && clockwork::is_busy_for(IMPATIENCE, now) {
                self.relieve(now);
            }
            // Not for any other reason: to return takes the GVL, which may be what keeps the main thread busy.
            if interrupted || is_late(now) {
                return;
            }
        }
    }

    /// Waits for the alarm, the monitor's death, or so long. `true` if a signal came.
    fn wait_for_events(&mut self, time: Millis) -> bool {
        // Where the kernel does not tell of the death, it is looked for every second.
        let time = if self.death.is_none() && !self.is_orphan { time.min(1_000) } else { time };
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        let alarm = self.burden.alarm;
        let death = self.death.as_ref().filter(|_| !self.is_orphan).map_or(alarm.as_fd(), |death| death.as_fd());
        let mut events = [alarm.as_fd(), death].map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
        let interrupted = poll(&mut events, timeout).is_err();
        let [rung, died] = events.map(|event| event.any().unwrap_or(false));
        if rung {
            alarm.reset();
        }
        let is_orphaned = match &self.death {
            Some(_) => died && !process::is_child_of(self.monitor),
            None => !process::is_child_of(self.monitor),
        };
        if !self.is_orphan && is_orphaned {
            self.is_orphan = true;
            end_soon();
        }
        interrupted
    }

    /// Whether there is, or was a moment ago, something that should not wait for this worker.
    fn is_watching(&mut self, now: Millis) -> bool {
        if !self.burden.is_watched.load(Ordering::Acquire) {
            return false;
        }
        if self.is_burdened() {
            self.burdened_at = now;
        } else if now.saturating_sub(self.burdened_at) > AFTERGLOW {
            self.burden.is_watched.swap(false, Ordering::AcqRel);
            // Whoever has come before that store did not ring.
            if self.is_burdened() {
                self.burden.is_watched.store(true, Ordering::Release);
                self.burdened_at = now;
            }
        }
        self.burden.is_watched.load(Ordering::Acquire)
    }

    fn is_burdened(&self) -> bool {
        let held = self.burden.lock();
        self.burden.may_owe_others.load(Ordering::Acquire) || held.upgrade().is_some_and(|held| !held.is_empty())
    }

    /// Gives away what others can serve, since the main thread does not come to it.
    fn relieve(&self, now: Millis) {
        let guard = self.burden.lock();
        let Some(held) = guard.upgrade() else { return };
        // Without a reactor they are as well off here. One is on its way, if it can be.
        while self.scoreboard.has_reactor()
            && let Some(connection) = held.take_one_out()
        {
            if let Err(connection) = outlet::send_waiting(&self.link, connection) {
                // There is no room, for the others neither. It goes back to where it was, or its client has to come
                // again.
                drop(held.hold(connection, now + IMPATIENCE));
                break;
            }
        }
        if self.burden.may_owe_others.swap(false, Ordering::AcqRel) {
            self.link.nudge.ring();
        }
    }
}

/// Ends this process after a while, whatever the application does. The main thread was told by a signal, and may obey
/// before. The thread that counts is none of Ruby's: native code may keep the GVL for ever, and this watcher with it.
pub fn end_soon() {
    std::thread::spawn(|| {
        std::thread::sleep(ORPHAN_PATIENCE);
        process::leave(1);
    });
}
