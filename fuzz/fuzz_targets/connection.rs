//! See `pitchfork_fuzz::connection`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pitchfork_fuzz::connection::run(input));
