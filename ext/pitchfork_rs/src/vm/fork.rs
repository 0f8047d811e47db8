//! Forking through Ruby.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;

use magnus::{Error, Module, RModule, Ruby, Value, value::ReprValue};
use pitchfork_core::children::Pid;
use pitchfork_core::sys::process::leave;

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
///
/// Where the system has no room for another process, Ruby would try again every second, for ever, deaf to everything.
/// So that is found out before, with a thread: it takes up the same room.
pub fn fork(ruby: &Ruby) -> Result<Side, Error> {
    check_room().map_err(|error| Error::new(ruby.exception_io_error(), format!("no room to fork: {error}")))?;
    let before = std::process::id();
    let forked: Result<Option<Pid>, Error> = process(ruby)?.funcall("fork", ());
    let child = forked.map_err(|error| {
        // A library's callback has failed in the new process, which must not go on as if it were the old one.
        if std::process::id() != before {
            eprintln!("cannot go on after a fork: {error}");
            leave(1);
        }
        error
    })?;
    Ok(child.map_or(Side::Child, |child| Side::Parent { child }))
}

/// Starts a thread that does nothing, and waits for its end. Not one of the standard library's: that would allocate,
/// and a thread's first allocation gives it an arena of its own, which every process forked later would inherit.
fn check_room() -> io::Result<()> {
    extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
        std::ptr::null_mut()
    }
    let mut thread = MaybeUninit::uninit();
    // SAFETY: `thread` has room for the thread's name; the function takes and gives nothing.
    let failed = unsafe { libc::pthread_create(thread.as_mut_ptr(), std::ptr::null(), nothing, std::ptr::null_mut()) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    // SAFETY: the thread was just made, and is joined once.
    unsafe { libc::pthread_join(thread.assume_init(), std::ptr::null_mut()) };
    Ok(())
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
