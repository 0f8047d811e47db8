//! See `pitchfork_fuzz::differential`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pitchfork_fuzz::differential::run(input));
