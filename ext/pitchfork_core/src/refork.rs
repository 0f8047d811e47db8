//! When to try again: the pauses after failures.

use crate::children::Millis;

/// How long the server waits after a promotion that a worker's condition asked for, before it grants another one.
pub const CONDITION_BACKOFF: Millis = 10_000;

/// A child that failed, or died, within this time of becoming ready counts as one that never came up.
pub const STABLE_AFTER: Millis = 1_000;

const FIRST_PAUSE: Millis = 100;
const LONGEST_PAUSE: Millis = 10_000;

/// An exponential pause between attempts: 100 ms, doubled by each failure in a row, up to 10 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
    not_before: Millis,
}

impl Backoff {
    /// Counts one failure; the next attempt has to wait.
    pub fn fail(&mut self, now: Millis) {
        let pause = FIRST_PAUSE << self.failures.min(10);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + pause.min(LONGEST_PAUSE);
    }

    /// An attempt went well: the next one need not wait.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// Whether an attempt may be made now.
    #[must_use]
    pub fn is_over(&self, now: Millis) -> bool {
        now >= self.not_before
    }

    /// From when on an attempt may be made.
    #[must_use]
    pub fn not_before(&self) -> Millis {
        self.not_before
    }
}

/// How long nobody is asked for after this many children in a row failed to come up, of `wanted` in all.
///
/// It grows with each round of failures, like the pause of each single number, but not beyond a second: a number that
/// would come up must not wait for long because of one that does not.
#[must_use]
pub fn spacing(failures: u32, wanted: u32) -> Millis {
    let rounds = failures.saturating_sub(1) / wanted.max(1);
    (FIRST_PAUSE << rounds.min(10)).min(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let mut backoff = Backoff::default();
        let pauses: Vec<Millis> = (0..12)
            .map(|_| {
                backoff.fail(1_000);
                backoff.not_before() - 1_000
            })
            .collect();
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert_eq!(pauses[11], LONGEST_PAUSE);
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn many_that_fail_together_are_spaced_out() {
        assert_eq!([1, 2, 3, 4, 5].map(|failures| spacing(failures, 1)), [100, 200, 400, 800, 1_000]);
        assert_eq!([1, 64, 65, 128, 129].map(|failures| spacing(failures, 64)), [100, 100, 200, 200, 400]);
        assert_eq!(spacing(u32::MAX, 0), 1_000);
    }

    #[test]
    fn a_success_ends_the_pause() {
        let mut backoff = Backoff::default();
        backoff.fail(5);
        assert!(!backoff.is_over(104));
        assert!(backoff.is_over(105));
        backoff.fail(105);
        backoff.succeed();
        assert!(backoff.is_over(0));
    }
}
