//! The ways in which a network may cut an input.

use crate::Random;

/// Where to cut an input: behind each of these positions, which rise and end with the input's length.
///
/// Once nowhere, once behind each byte, once in two, and a few times in pieces of all lengths.
#[must_use]
pub fn cuts(input: &[u8]) -> Vec<Vec<usize>> {
    let mut random = Random::of(input);
    let len = input.len();
    if len == 0 {
        return vec![vec![0]];
    }
    let mut all = vec![vec![len], (1..=len).collect(), vec![random.below(len), len]];
    for longest in [4, 16, 64] {
        let mut positions = Vec::new();
        let mut at = 0;
        while at < len {
            at = len.min(at + 1 + random.below(longest));
            positions.push(at);
        }
        all.push(positions);
    }
    all
}
