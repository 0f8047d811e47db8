//! The application's clock: when a request becomes too slow, for this process and for the monitor.
//!
//! Starting and stopping it are plain stores. The soft deadline is read by this worker's watcher thread, the hard
//! one, on the scoreboard, by the monitor. While a client is waited for, neither runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{OnceLock, RwLock};
use std::thread::ThreadId;

use pitchfork_core::children::Millis;
use pitchfork_core::scoreboard::Line;
use pitchfork_core::sys::clock;

static LONGEST_WAIT: AtomicU64 = AtomicU64::new(0);
static SOFT_LIMIT: AtomicU64 = AtomicU64::new(0);
static HARD_LIMIT: AtomicU64 = AtomicU64::new(0);
static SOFT_DEADLINE: AtomicU64 = AtomicU64::new(0);
/// Since when the thread that serves has been busy with one request; 0 while it is not.
static BUSY_SINCE: AtomicU64 = AtomicU64::new(0);
/// What the application has asked for beyond the limits, for the request in hand.
static EXTENSION: AtomicU64 = AtomicU64::new(0);
/// This worker has been found too slow, and is about to end.
static CONDEMNED: AtomicBool = AtomicBool::new(false);
/// The main thread of this worker has been told to exit.
static EXECUTED: AtomicBool = AtomicBool::new(false);
/// The thread that serves. A forked child continues on the same thread, under the same name.
static OWNER: OnceLock<ThreadId> = OnceLock::new();
static LINE: RwLock<Option<&'static Line>> = RwLock::new(None);

/// Sets the limits of this process, in milliseconds, and the line that the monitor watches.
///
/// A client that is waited for is heard of, or given up, within `longest_wait`.
pub fn set_up(line: &'static Line, soft: Millis, hard: Millis, longest_wait: Millis) {
    LONGEST_WAIT.store(longest_wait, Ordering::Relaxed);
    SOFT_LIMIT.store(soft, Ordering::Relaxed);
    HARD_LIMIT.store(hard, Ordering::Relaxed);
    SOFT_DEADLINE.store(0, Ordering::Relaxed);
    CONDEMNED.store(false, Ordering::Relaxed);
    EXECUTED.store(false, Ordering::Relaxed);
    OWNER.get_or_init(|| std::thread::current().id());
    *LINE.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(line);
    stop();
}

/// The application begins to work on a request.
pub fn start() {
    let now = clock::monotonic();
    EXTENSION.store(0, Ordering::Relaxed);
    BUSY_SINCE.store(now, Ordering::Release);
    SOFT_DEADLINE.store(now + SOFT_LIMIT.load(Ordering::Relaxed), Ordering::Release);
    promise(now, 0);
}

/// The application has finished with a request, or this idle process is still alive. Gives the time.
pub fn stop() -> Millis {
    SOFT_DEADLINE.store(0, Ordering::Release);
    EXTENSION.store(0, Ordering::Relaxed);
    BUSY_SINCE.store(0, Ordering::Release);
    let now = clock::monotonic();
    promise(now, 0);
    now
}

/// The request in hand has been found too slow. That need not be found again; this process makes no promises any more,
/// so that the monitor's patience ends in time, whatever comes first.
pub fn condemn() {
    SOFT_DEADLINE.store(0, Ordering::Release);
    CONDEMNED.store(true, Ordering::Release);
}

/// The hooks of a worker that was found too slow have run, and its exit is on its way to the main thread.
pub fn execute() {
    EXECUTED.store(true, Ordering::Release);
}

/// Whether the main thread has been told to exit.
pub fn is_executed() -> bool {
    EXECUTED.load(Ordering::Acquire)
}

/// Whether this worker must not take another request, since it ends at any moment.
pub fn is_condemned() -> bool {
    CONDEMNED.load(Ordering::Acquire)
}

/// Gives the request in hand more time, on both deadlines.
pub fn extend(time: Millis) {
    EXTENSION.fetch_add(time, Ordering::Relaxed);
    if let Some(line) = *LINE.read().unwrap_or_else(std::sync::PoisonError::into_inner) {
        line.extend_deadline(time);
    }
}

/// A client is waited for, which takes as long as it takes.
pub fn await_client() {
    if OWNER.get() != Some(&std::thread::current().id()) {
        return;
    }
    let now = clock::monotonic();
    let _ = BUSY_SINCE.compare_exchange(0, now, Ordering::Release, Ordering::Relaxed);
    promise(now, LONGEST_WAIT.load(Ordering::Relaxed));
}

/// This process does something of its own that takes its time, between two requests. [`stop`] ends it.
pub fn be_busy() {
    BUSY_SINCE.store(clock::monotonic(), Ordering::Release);
}

/// Whether the thread that serves has been busy with one request for so long.
pub fn is_busy_for(time: Millis, now: Millis) -> bool {
    match BUSY_SINCE.load(Ordering::Acquire) {
        0 => false,
        since => now.saturating_sub(since) >= time,
    }
}

/// When the request in hand is too slow; 0 while there is none, or a client is waited for.
pub fn soft_deadline() -> Millis {
    match SOFT_DEADLINE.load(Ordering::Acquire) {
        0 => 0,
        deadline => deadline + EXTENSION.load(Ordering::Relaxed),
    }
}

/// Stops the clock while a client is waited for. On another thread than the application's own it goes on: that one may
/// be at work meanwhile.
pub fn pause() -> Paused {
    if OWNER.get() != Some(&std::thread::current().id()) {
        return Paused { left: None, is_stopped: false };
    }
    let deadline = SOFT_DEADLINE.swap(0, Ordering::AcqRel);
    await_client();
    let left = (deadline != 0).then(|| deadline.saturating_sub(clock::monotonic()));
    Paused { left, is_stopped: true }
}

/// A clock that was stopped.
#[must_use]
pub struct Paused {
    left: Option<Millis>,
    is_stopped: bool,
}

impl Paused {
    /// Lets the clock run again, with as much time as was left.
    pub fn resume(self) {
        if !self.is_stopped {
            return;
        }
        let now = clock::monotonic();
        if let Some(left) = self.left {
            SOFT_DEADLINE.store(now + left, Ordering::Release);
        }
        promise(now, 0);
    }
}

/// Tells the monitor by when this process will have given another sign of life.
fn promise(now: Millis, extra: Millis) {
    if is_condemned() {
        return;
    }
    let extra = extra + EXTENSION.load(Ordering::Relaxed);
    if let Some(line) = *LINE.read().unwrap_or_else(std::sync::PoisonError::into_inner) {
        line.set_deadline(now + HARD_LIMIT.load(Ordering::Relaxed) + extra);
    }
}
