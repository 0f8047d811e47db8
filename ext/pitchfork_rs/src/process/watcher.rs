//! The worker's one thread besides the main one: it sees what the main thread, inside the application, cannot.
//!
//! It waits without the GVL and holds no lock, so a fork never catches it at a bad moment. It looks at the clock
//! once per soft timeout while nothing is late, since a request that begins later is due later.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use magnus::typed_data::Obj;
use magnus::value::Opaque;
use magnus::{Error, Ruby, Value};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pitchfork_core::children::{Millis, Pid};
use pitchfork_core::sys::{clock, process};

use super::child::House;
use super::clockwork;
use crate::ruby_api::request_timeout::RequestTimeout;
use crate::vm::gvl;

/// How long the application may go on after the monitor's death.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(4);

/// Starts the watcher of this worker.
pub fn start(ruby: &Ruby, house: &House, worker: Value, timeout: Obj<RequestTimeout>) {
    let server = house.server;
    let soft_timeout = house.settings.soft_timeout;
    let mut watch = Watch { monitor: house.monitor, death: house.death.clone(), soft_timeout, is_orphan: false };
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
}

impl Watch {
    /// Waits until a request is late, or about as long as it takes one to become so.
    fn wait(&mut self) {
        let wait = match clockwork::soft_deadline() {
            0 => self.soft_timeout,
            deadline => deadline.saturating_sub(clock::monotonic()),
        };
        if self.is_orphan {
            pause(wait);
        } else if self.is_orphaned_within(wait) {
            self.is_orphan = true;
            end_soon();
        }
    }

    fn is_orphaned_within(&self, time: Millis) -> bool {
        let Some(death) = &self.death else {
            // This kernel does not tell; look every second.
            pause(time.min(1_000));
            return !process::is_child_of(self.monitor);
        };
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        poll(&mut [PollFd::new(death.as_fd(), PollFlags::POLLIN)], timeout).is_ok_and(|ready| ready > 0)
    }
}

/// Sleeps, unless interrupted.
fn pause(time: Millis) {
    let _ = poll(&mut [], PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX));
}

/// Ends this process after a while, whatever the application does. The main thread was told by a signal, and may obey
/// before. The thread that counts is none of Ruby's: native code may keep the GVL for ever, and this watcher with it.
pub fn end_soon() {
    std::thread::spawn(|| {
        std::thread::sleep(ORPHAN_PATIENCE);
        process::leave(1);
    });
}
