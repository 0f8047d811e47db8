//! The sibling fork: a child of this process's parent.
//!
//! A process cannot give its parent a child, but it can fork one that forks another and leaves: the orphan goes to
//! the nearest subreaper, which is the monitor.

use std::os::fd::AsFd;
use std::time::Duration;

use magnus::prelude::*;
use magnus::{Error, RModule, Ruby, Value};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pitchfork_core::children::{Millis, Pid};
use pitchfork_core::message::Report;
use pitchfork_core::sys::channel::Channel;
use pitchfork_core::sys::{clock, process};

use super::child::{Child, House};
use crate::rack::call;
use crate::vm::fork::{Side, fork, reap};
use crate::vm::gvl;

/// How long the middle process may take. It does nothing but fork, but callbacks of libraries run in it.
pub const PATIENCE: Millis = 5_000;
/// The middle process leaves with this status when the system had no room for one more process (sysexits.h).
const TEMPORARY_FAILURE: i32 = 75;

/// What came of a sibling fork.
pub enum Sibling {
    /// This is the new process.
    Child,
    /// This is the old one, and there is a new one.
    Forked,
    /// It could not be done just now: the system had no room for one more process, or forks were prevented for too long.
    NoRoom,
    /// The middle process did not do its work.
    Broken,
}

/// Forks a sibling of `child`, this process. The middle process says the new one's pid on `channel`, the new one's own,
/// in case the new one never gets to speak.
///
/// Blocks of `prevent_fork` are waited for, but not for longer than half of what a spawn may take.
pub fn fork_sibling(ruby: &Ruby, child: &Child, channel: &Channel) -> Result<Sibling, Error> {
    let House { server, settings, .. } = &*child.house;
    let lock: RModule = call::module(ruby)?.const_get("ForkLock")?;
    let patience = std::time::Duration::from_millis(settings.spawn_timeout / 2).as_secs_f64();
    let locked: bool = lock.funcall("acquire", (server.logger(ruby)?, child.name()?, patience))?;
    if !locked {
        return Ok(Sibling::NoRoom);
    }
    let sibling = match fork(ruby) {
        Ok(Side::Parent { child: middle }) => await_middle(ruby, middle),
        Ok(Side::Child) => Ok(be_middle(ruby, channel)),
        Err(_) => Ok(Sibling::NoRoom),
    };
    lock.funcall::<_, _, Value>("release", ())?;
    sibling
}

/// The middle process: returns only in its child. It runs no exit handlers, since the user does not know of it.
fn be_middle(ruby: &Ruby, channel: &Channel) -> Sibling {
    match fork(ruby) {
        Ok(Side::Child) => Sibling::Child,
        Ok(Side::Parent { child }) => {
            let said = channel.send(&Report::Forked { pid: child }.encode(), None);
            if said.is_err() {
                // Nobody is there to hear of it, and nobody would kill it if it hung.
                let _ = process::kill(child, libc::SIGKILL);
            }
            process::leave(i32::from(said.is_err()))
        }
        Err(_) => process::leave(TEMPORARY_FAILURE),
    }
}

fn await_middle(ruby: &Ruby, middle: Pid) -> Result<Sibling, Error> {
    let deadline = clock::monotonic() + PATIENCE;
    let watch = process::watch(middle);
    loop {
        match reap(ruby, middle) {
            Ok(None) => {}
            Ok(Some(status)) => {
                let status: Option<i32> = status.funcall("exitstatus", ())?;
                return Ok(match status {
                    Some(0) => Sibling::Forked,
                    Some(TEMPORARY_FAILURE) => Sibling::NoRoom,
                    _ => Sibling::Broken,
                });
            }
            // The application waits for any child, and was faster. If there is no sibling, its channel says so.
            Err(_) if !process::is_alive(middle) => return Ok(Sibling::Forked),
            Err(error) => return Err(error),
        }
        let left = deadline.saturating_sub(clock::monotonic());
        if left == 0 {
            // Its child, if it has one, is told by its scoreboard line that nobody waits for it.
            let _ = process::kill(middle, libc::SIGKILL);
        }
        let wait = if left == 0 { 100 } else { left };
        gvl::wait(ruby, || match &watch {
            Some(watch) => {
                let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
                let _ = poll(&mut [PollFd::new(watch.as_fd(), PollFlags::POLLIN)], timeout);
            }
            None => std::thread::sleep(Duration::from_millis(wait.min(5))),
        })?;
    }
}
