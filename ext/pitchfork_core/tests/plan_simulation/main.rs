//! Thousands of random histories of a whole server, played against the plan alone: processes that crash, hang, come
//! late or refuse, signals at any time, and after each step the question whether everything that must hold does.
//!
//! `PITCHFORK_RS_HISTORIES` sets how many are played; `PITCHFORK_RS_SEED` plays a single one again.

mod actions;
mod forking;
mod history;
mod invariants;
mod process;
mod reactor;
mod rng;
mod watch;
mod weather;
mod wire;
mod world;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use world::{Counts, Violation};

const HISTORIES: u64 = 5_000;
/// After so many failures there is nothing more to learn from one run.
const ENOUGH: usize = 20;

#[derive(Default)]
struct Outcome {
    counts: Counts,
    failures: BTreeMap<u64, Violation>,
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn explain(panic: Box<dyn Any + Send>) -> Violation {
    match panic.downcast() {
        Ok(violation) => *violation,
        Err(_) => Violation { what: "a panic, see above".into(), account: String::new() },
    }
}

/// Plays the next seed until there are no more.
fn play_on(next: &AtomicU64, end: u64) -> Outcome {
    let mut outcome = Outcome::default();
    while outcome.failures.len() < ENOUGH {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            break;
        }
        match catch_unwind(|| history::play(seed)) {
            Ok(counts) => outcome.counts.add(counts),
            Err(panic) => drop(outcome.failures.insert(seed, explain(panic))),
        }
    }
    outcome
}

#[test]
fn every_history_ends_well() {
    let (first, histories) = match number_from("PITCHFORK_RS_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number_from("PITCHFORK_RS_HISTORIES").unwrap_or(HISTORIES)),
    };
    let next = AtomicU64::new(first);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut total = Outcome::default();
    thread::scope(|scope| {
        let player = || play_on(&next, first + histories);
        let players: Vec<_> = (0..threads).map(|_| scope.spawn(player)).collect();
        for outcome in players.into_iter().filter_map(|player| player.join().ok()) {
            total.counts.add(outcome.counts);
            total.failures.extend(outcome.failures);
        }
    });
    println!("{histories} histories: {}", total.counts);
    if let Some(failure) = total.failures.values().next() {
        println!("{}", failure.account);
    }
    for (seed, failure) in &total.failures {
        println!("seed {seed} {}", failure.what);
    }
    assert!(total.failures.is_empty(), "play one of them again with PITCHFORK_RS_SEED");
}
