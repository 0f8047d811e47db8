//! What a process can ask the kernel about itself and its relatives.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid as NixPid, getpgid, getppid, setpgid};

use crate::children::Pid;
use crate::error::Error;

/// Orphaned descendants of this process become its own children from now on.
pub fn adopt_orphans() -> Result<(), Error> {
    prctl::set_child_subreaper(true).map_err(|errno| Error::system("prctl", "PR_SET_CHILD_SUBREAPER", errno))
}

/// Waits until `monitor` is this process's parent, and asks the kernel for `SIGTERM` when it dies.
///
/// After a sibling fork that takes until the middle process has left. Returns `false` when it does not happen
/// within five seconds, or when the monitor is gone: nobody watches over this process then, and it must exit.
pub fn follow(monitor: Pid) -> Result<bool, Error> {
    let patience = Instant::now() + Duration::from_secs(5);
    while getppid().as_raw() != monitor {
        if Instant::now() > patience || !is_alive(monitor) {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    prctl::set_pdeathsig(Signal::SIGTERM).map_err(|errno| Error::system("prctl", "PR_SET_PDEATHSIG", errno))?;
    // It may have died before the request.
    Ok(getppid().as_raw() == monitor)
}

/// Whether this process's parent is still `monitor`.
#[must_use]
pub fn is_child_of(monitor: Pid) -> bool {
    getppid().as_raw() == monitor
}

/// Whether there is such a process, be it a zombie.
#[must_use]
pub fn is_alive(pid: Pid) -> bool {
    nix::sys::signal::kill(NixPid::from_raw(pid), None) != Err(Errno::ESRCH)
}

/// Sends a signal to one process. `ESRCH` is told by [`Error::errno`].
pub fn kill(pid: Pid, signal: i32) -> Result<(), Error> {
    let signal = Signal::try_from(signal).map_err(|errno| Error::system("kill", format!("pid {pid}"), errno))?;
    nix::sys::signal::kill(NixPid::from_raw(pid), signal)
        .map_err(|errno| Error::system("kill", format!("pid {pid}"), errno))
}

/// Makes this process the leader of a process group of its own.
pub fn lead_group() -> Result<(), Error> {
    let own = NixPid::from_raw(0);
    match setpgid(own, own) {
        // A session leader leads a group already, and may not change it.
        Err(Errno::EPERM) if getpgid(None) == Ok(nix::unistd::getpid()) => Ok(()),
        other => other.map_err(|errno| Error::system("setpgid", "this process", errno)),
    }
}

/// A descriptor that becomes readable when the process ends; `None` where the kernel has no such thing.
#[must_use]
pub fn watch(pid: Pid) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let raw = i32::try_from(raw).ok().filter(|raw| *raw >= 0)?;
    // SAFETY: the kernel has just made this descriptor for us; nobody else knows its number.
    Some(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The pid of some child that has ended and was not reaped. It is left for the owner to reap.
#[must_use]
pub fn some_zombie() -> Option<Pid> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::All, flags) {
        Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _)) => Some(pid.as_raw()),
        _ => None,
    }
}

/// The pids of all children that have ended and were not reaped; at least one of them where /proc does not tell.
#[must_use]
pub fn zombies() -> Vec<Pid> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            children.split_ascii_whitespace().filter_map(|pid| pid.parse::<Pid>().ok()).filter(|pid| is_zombie(*pid)),
        );
    }
    if found.is_empty() { some_zombie().into_iter().collect() } else { found }
}

fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it, in brackets, may hold anything.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the one that asked first; more than that is none of the number's
/// business. So a process can find out that it is not the one it was without a system call.
pub fn forks() -> u32 {
    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static COUNTING: Once = Once::new();
    // SAFETY: pthread_atfork is given one function, which lives as long as the program and does nothing that a process
    // may not do right after a fork. If there is no memory for it, forks are not noticed.
    COUNTING.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(count));
    });
    FORKS.load(Ordering::Relaxed)
}

/// Ends this process at once: no `at_exit`, no finalizers, no buffers written.
pub fn leave(status: i32) -> ! {
    // SAFETY: _exit does not return and touches no memory of ours.
    unsafe { libc::_exit(status) }
}

/// Makes a write to a connection that is broken an error, and nothing more, where the call cannot be told so:
/// `sendfile(2)` has no `MSG_NOSIGNAL`.
pub fn ignore_broken_pipes() {
    // SAFETY: no handler is installed, and whatever was installed is not wanted back.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}
