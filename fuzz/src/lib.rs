//! Fuzz targets for the HTTP layer of pitchfork-rs and for its connections that wait, as plain functions: each takes any
//! bytes, and panics if a promise was broken on them.

pub mod chunked;
pub mod connection;
pub mod differential;
pub mod framing;
pub mod head;
pub mod mutator;
pub mod parcel;
pub mod pieces;
pub mod reference;
pub mod response;

use pitchfork_core::http::Limits;

/// A target: it panics on a finding.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 7] = [
    ("head", head::run),
    ("framing", framing::run),
    ("chunked", chunked::run),
    ("response", response::run),
    ("differential", differential::run),
    ("parcel", parcel::run),
    ("connection", connection::run),
];

/// Limits so low that short inputs reach all of them.
#[must_use]
pub fn tight_limits() -> Limits {
    Limits {
        max_header_size: 200,
        max_fields: 4,
        max_target: 24,
        max_method: 8,
        max_chunk_extensions: 12,
        max_body_size: Some(40),
    }
}

/// A seeded generator of numbers: splitmix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts with a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Starts with whatever an input holds, so that the numbers are as reproducible as the input.
    #[must_use]
    pub fn of(input: &[u8]) -> Self {
        Self(
            input
                .iter()
                .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)),
        )
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.next_u64().checked_rem(bound).unwrap_or(0)).unwrap_or(0)
    }
}
