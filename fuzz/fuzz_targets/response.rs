//! See `pitchfork_fuzz::response`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pitchfork_fuzz::response::run(input));
