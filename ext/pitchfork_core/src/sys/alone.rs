//! A process that has nothing any more of the program it was forked from.

use std::ffi::c_int;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{alarm, dup2_stderr, dup2_stdin, dup2_stdout};

use super::{limits, process};
use crate::children::Pid;
use crate::error::Error;

/// Those that operators and terminals send, that the program may have used among its threads, and that a closed
/// connection sends. Such a process is asked to end by other means.
const IGNORED: [Signal; 11] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGPIPE,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    Signal::SIGIO,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
];

/// For how many seconds such a process may live on without its parent, whatever it does.
const ORPHAN_PATIENCE: u32 = 5;

/// As many as the kernel gives to a process unless it is told otherwise: `fs.nr_open`.
const MOST_DESCRIPTORS: RawFd = 1 << 20;

/// The parent of such a process.
static PARENT: AtomicI32 = AtomicI32::new(0);

/// Runs what needs nothing of the program but `kept`, and ends this process with the status that it gives, at once: no
/// `at_exit`, no finalizers, no buffers written. A panic in it, whose message goes to standard error, is status 1. So
/// is a parent that is not, or not any more, the process `parent`. When that dies, `what` has five seconds to end.
///
/// The handlers of signals are the program's, so there are none of them any more. Its descriptors are closed, but for
/// `kept`, for standard error, and for those that are `reserved`: a thread of the program's runtime, which this cannot
/// end, may wait on those. `/dev/null` takes the place of the other standard streams, so that no connection gets their
/// numbers, and nobody's terminal or pipe is held open.
pub fn run(parent: Pid, kept: &[BorrowedFd<'_>], reserved: impl Fn(RawFd) -> bool, what: impl FnOnce() -> i32) -> ! {
    PARENT.store(parent, Ordering::Relaxed);
    reset_signals();
    let run = || {
        if !process::follow(parent).unwrap_or(false) {
            return 1;
        }
        let kept: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
        close_all_but(|descriptor| descriptor <= 2 || kept.contains(&descriptor) || reserved(descriptor));
        // Then, because before there may have been no descriptor left for it.
        if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
            let _ = dup2_stdin(&null).and_then(|()| dup2_stdout(&null));
        }
        what()
    };
    process::leave(catch_unwind(AssertUnwindSafe(run)).unwrap_or(1))
}

/// Sends what this process writes to its standard error to another file.
pub fn replace_standard_error(with: impl std::os::fd::AsFd) -> Result<(), Error> {
    dup2_stderr(with).map_err(|errno| Error::system("dup2", "standard error", errno))
}

/// The kernel sends `SIGTERM` at the parent's death. Whoever else does is not heeded.
extern "C" fn heed_death(_: c_int) {
    if !process::is_child_of(PARENT.load(Ordering::Relaxed)) {
        alarm::set(ORPHAN_PATIENCE);
    }
}

fn reset_signals() {
    for signal in Signal::iterator() {
        let handler = match signal {
            Signal::SIGTERM => SigHandler::Handler(heed_death),
            signal if IGNORED.contains(&signal) => SigHandler::SigIgn,
            _ => SigHandler::SigDfl,
        };
        let action = SigAction::new(handler, SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the only handler calls getppid and alarm, which may be called at any time, and reads an atomic.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

fn close_all_but(is_kept: impl Fn(RawFd) -> bool) {
    let close = |descriptor: RawFd| {
        if !is_kept(descriptor) {
            // SAFETY: whoever owns this descriptor never uses it again: this thread never returns to it, what it runs
            // needs the kept ones only, and other threads have not survived the fork or are left what is reserved.
            unsafe { libc::close(descriptor) };
        }
    };
    match fs::read_dir("/proc/self/fd") {
        Ok(entries) => {
            // First all numbers: the directory's own is among them, and closed by then.
            let open = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            open.collect::<Vec<RawFd>>().into_iter().for_each(close);
        }
        // There is no such directory, or no descriptor left to read it by: whatever may be open.
        Err(_) => (0..limits::descriptors().min(MOST_DESCRIPTORS)).for_each(close),
    }
}
