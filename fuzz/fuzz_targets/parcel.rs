//! See `pitchfork_fuzz::parcel`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pitchfork_fuzz::parcel::run(input));
