//! See `pitchfork_fuzz::head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pitchfork_fuzz::head::run(input));
