//! See `pitchfork_fuzz::framing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pitchfork_fuzz::framing::run(input));
