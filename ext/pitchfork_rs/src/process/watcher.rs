//! The worker's one thread besides the main one: it sees what the main thread, inside the application, cannot.
//!
//! It waits without the GVL and holds no lock, so a fork never catches it at a bad moment. It looks at the clock
//! once per soft timeout while nothing is late, since a request that begins later is due later.

use std::os::fd::{AsFd, OwnedFd};

use magnus::value::Opaque;
use magnus::{Error, Ruby, Value};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pitchfork_core::children::{Millis, Pid};
use pitchfork_core::sys::{clock, process};

use super::clockwork;
use super::server::Server;
use crate::vm::gvl;

/// How long the application may go on after the monitor's death.
const ORPHAN_PATIENCE: Millis = 4_000;

/// Starts the watcher of this worker.
pub fn start(ruby: &Ruby, server: Server, monitor: Pid, worker: Value, soft_timeout: Millis) {
    // The main thread keeps `worker` where it is for as long as this process has this role.
    let worker = Opaque::from(worker);
    let mut watch = Watch { monitor, death: process::watch(monitor), soft_timeout, orphaned_at: None };
    ruby.thread_create_from_fn(move |ruby: &Ruby| -> Result<(), Error> {
        loop {
            // The request may have ended while this thread waited for the GVL.
            if gvl::without(|| watch.wait()).is_some() && is_late(clock::monotonic()) {
                clockwork::stop();
                server.call(ruby, "soft_timeout", (ruby.get_inner(worker),))?;
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
    death: Option<OwnedFd>,
    soft_timeout: Millis,
    orphaned_at: Option<Millis>,
}

impl Watch {
    /// Waits until a request is late, or about as long as it takes one to become so.
    ///
    /// Once the monitor is dead, the main thread, which was told by a signal, gets some time to obey.
    fn wait(&mut self) {
        let now = clock::monotonic();
        if let Some(at) = self.orphaned_at {
            let left = (at + ORPHAN_PATIENCE).saturating_sub(now);
            if left == 0 {
                process::leave(1);
            }
            let _ = poll(&mut [], PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
            return;
        }
        let wait = match clockwork::soft_deadline() {
            0 => self.soft_timeout,
            deadline => deadline.saturating_sub(now),
        };
        if self.is_orphaned_within(wait) {
            self.orphaned_at = Some(clock::monotonic());
        }
    }

    fn is_orphaned_within(&self, time: Millis) -> bool {
        let Some(death) = &self.death else {
            // This kernel does not tell; look every second.
            let _ = poll(&mut [], PollTimeout::try_from(time.min(1_000)).unwrap_or(PollTimeout::MAX));
            return !process::is_child_of(self.monitor);
        };
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        poll(&mut [PollFd::new(death.as_fd(), PollFlags::POLLIN)], timeout).is_ok_and(|ready| ready > 0)
    }
}
