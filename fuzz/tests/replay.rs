//! Every seed, every input that once was a finding, and many inputs made from both, through every target.
//!
//! This is what a stable compiler can do; libFuzzer, which sees where an input leads, does more: see `bin/fuzz`.

#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::panic;
use std::path::Path;
use std::time::{Duration, Instant};

use pitchfork_fuzz::{Random, TARGETS, Target, mutator};

/// How many inputs are made for each target, if there is time.
const MADE: u32 = 80_000;
/// How long that may take for each target.
const TIME: Duration = Duration::from_secs(4);
const SEED: u64 = 0x5eed;

/// The inputs kept for a target, with their names.
fn kept(kind: &str, target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(target);
    let Ok(entries) = fs::read_dir(&directory) else { return Vec::new() };
    let mut inputs: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string(), fs::read(&path).unwrap())
        })
        .collect();
    // The order in a directory is the file system's, and the made inputs depend on it.
    inputs.sort();
    inputs
}

fn replay(run: Target, name: &str, input: &[u8]) {
    if let Err(payload) = panic::catch_unwind(|| run(input)) {
        eprintln!("{name}: b\"{}\"", input.escape_ascii());
        panic::resume_unwind(payload);
    }
}

fn target(name: &str) {
    let (_, run) = TARGETS.into_iter().find(|(known, _)| *known == name).unwrap();
    let seeds = kept("seeds", name);
    assert!(!seeds.is_empty(), "no seeds for {name}");
    let inputs: Vec<_> = seeds.into_iter().chain(kept("regressions", name)).collect();
    for (file, input) in &inputs {
        replay(run, file, input);
    }

    let inputs: Vec<_> = inputs.into_iter().map(|(_, input)| input).collect();
    let mut random = Random::new(SEED);
    let began = Instant::now();
    let mut made = 0;
    let mut bytes = 0;
    while made < MADE && began.elapsed() < TIME {
        let input = mutator::mutate(&inputs, &mut random);
        replay(run, &format!("{name}, made input {made}"), &input);
        made += 1;
        bytes += input.len();
    }
    println!("{name}: {} kept and {made} made inputs, {bytes} bytes, in {:?}", inputs.len(), began.elapsed());
}

#[test]
fn head() {
    target("head");
}

#[test]
fn framing() {
    target("framing");
}

#[test]
fn chunked() {
    target("chunked");
}

#[test]
fn response() {
    target("response");
}

#[test]
fn differential() {
    target("differential");
}

#[test]
fn parcel() {
    target("parcel");
}

#[test]
fn connection() {
    target("connection");
}
