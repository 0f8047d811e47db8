//! Forking through Ruby.

use magnus::{Error, Module, RModule, Ruby, Value, value::ReprValue};
use pitchfork_core::children::Pid;

/// On which side of a fork this is.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    /// The process that was there before.
    Parent {
        /// The new process.
        child: Pid,
    },
    /// The new process.
    Child,
}

/// Forks with `Process.fork`, never a bare `fork(2)`: libraries hook into `Process._fork` to drop the connections
/// that a child inherits.
pub fn fork(ruby: &Ruby) -> Result<Side, Error> {
    let child: Option<Pid> = process(ruby)?.funcall("fork", ())?;
    Ok(child.map_or(Side::Child, |child| Side::Parent { child }))
}

/// Reaps one child with `Process.waitpid2`, if it has ended; anything else would hide its status from Ruby.
pub fn reap(ruby: &Ruby, pid: Pid) -> Result<Option<Value>, Error> {
    const NO_HANG: i32 = libc::WNOHANG;
    let reaped: Option<(Pid, Value)> = process(ruby)?.funcall("waitpid2", (pid, NO_HANG))?;
    Ok(reaped.map(|(_, status)| status))
}

/// The module `Process`.
pub fn process(ruby: &Ruby) -> Result<RModule, Error> {
    ruby.class_object().const_get("Process")
}
