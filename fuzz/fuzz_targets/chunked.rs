//! See `pitchfork_fuzz::chunked`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pitchfork_fuzz::chunked::run(input));
