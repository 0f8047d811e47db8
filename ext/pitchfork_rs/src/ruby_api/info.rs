//! `PitchforkRs::Info`: what an application may ask about its server, and tell it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use magnus::prelude::*;
use magnus::{Error, RHash, RModule, Ruby, function};
use pitchfork_core::reactor::{Count, Counts};
use pitchfork_core::scoreboard::{Line, Scoreboard};
use pitchfork_core::sys::clock;

/// The server this process belongs to, and its own line once it is a child.
static PLACE: RwLock<Option<(Scoreboard, Option<&'static Line>)>> = RwLock::new(None);

/// What the reactor tells about itself; the same in all processes of a server.
static COUNTS: RwLock<Option<Counts>> = RwLock::new(None);

/// The names under which applications see the reactor's counts.
const SHOWN: [(&str, Count); 7] = [
    ("idle", Count::Idle),
    ("reading", Count::Reading),
    ("ready", Count::Ready),
    ("writing", Count::Writing),
    ("handed_over", Count::HandedOver),
    ("refused", Count::Refused),
    ("closed_by_deadline", Count::ClosedByDeadline),
];

/// Whether this process, or one that it descends from, has called itself unsafe to fork. What a mold has loaded or
/// opened its workers have, too.
static UNSAFE_TO_FORK: AtomicBool = AtomicBool::new(false);

/// Notes the server that this process belongs to.
pub fn enter(scoreboard: Scoreboard, line: Option<&'static Line>) {
    if let Some(line) = line.filter(|_| UNSAFE_TO_FORK.load(Ordering::Relaxed)) {
        line.set_unsafe_to_fork();
    }
    *PLACE.write().unwrap_or_else(PoisonError::into_inner) = Some((scoreboard, line));
}

/// Notes where the server's reactor counts its connections.
pub fn count_connections(counts: Counts) {
    *COUNTS.write().unwrap_or_else(PoisonError::into_inner) = Some(counts);
}

fn scoreboard() -> Option<Scoreboard> {
    PLACE.read().unwrap_or_else(PoisonError::into_inner).map(|(scoreboard, _)| scoreboard)
}

fn line() -> Option<&'static Line> {
    PLACE.read().unwrap_or_else(PoisonError::into_inner).and_then(|(_, line)| line)
}

fn workers_count() -> u32 {
    scoreboard().map_or(0, |scoreboard| scoreboard.wanted())
}

fn live_workers_count() -> usize {
    scoreboard().map_or(0, |scoreboard| scoreboard.live_workers(clock::monotonic()))
}

fn is_shutting_down() -> bool {
    scoreboard().is_some_and(|scoreboard| scoreboard.is_shutting_down())
}

fn connections(ruby: &Ruby) -> Result<RHash, Error> {
    let counts = *COUNTS.read().unwrap_or_else(PoisonError::into_inner);
    let shown = ruby.hash_new();
    for (name, count) in SHOWN {
        shown.aset(ruby.to_symbol(name), counts.map_or(0, |counts| counts.get(count)))?;
    }
    shown.freeze();
    Ok(shown)
}

fn is_fork_safe() -> bool {
    !UNSAFE_TO_FORK.load(Ordering::Relaxed)
}

fn no_longer_fork_safe() {
    UNSAFE_TO_FORK.store(true, Ordering::Relaxed);
    if let Some(line) = line() {
        line.set_unsafe_to_fork();
    }
}

/// Defines the module.
pub fn init(_ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let info = module.define_module("Info")?;
    info.define_singleton_method("workers_count", function!(workers_count, 0))?;
    info.define_singleton_method("live_workers_count", function!(live_workers_count, 0))?;
    info.define_singleton_method("connections", function!(connections, 0))?;
    info.define_singleton_method("shutting_down?", function!(is_shutting_down, 0))?;
    info.define_singleton_method("fork_safe?", function!(is_fork_safe, 0))?;
    info.define_singleton_method("no_longer_fork_safe!", function!(no_longer_fork_safe, 0))?;
    Ok(())
}
