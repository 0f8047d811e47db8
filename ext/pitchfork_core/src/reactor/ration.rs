//! How often something may be said.

use crate::children::Millis;

const SECOND: Millis = 1_000;

/// So many times within a second, and then not until the next one.
#[derive(Debug)]
pub(super) struct Ration {
    a_second: u32,
    left: u32,
    until: Millis,
}

impl Ration {
    pub(super) fn new(a_second: u32) -> Self {
        Self { a_second, left: 0, until: 0 }
    }

    /// Whether it may be said now; if so, it counts as said.
    pub(super) fn take(&mut self, now: Millis) -> bool {
        if now >= self.until {
            self.until = now + SECOND;
            self.left = self.a_second;
        }
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_in_its_second_is_not_saved_up() {
        let mut ration = Ration::new(2);
        let said = |ration: &mut Ration, now| (0..5).filter(|_| ration.take(now)).count();
        assert_eq!(said(&mut ration, 5_000), 2);
        assert_eq!(said(&mut ration, 5_999), 0);
        assert_eq!(said(&mut ration, 6_000), 2);
        assert_eq!(said(&mut ration, 60_000), 2);
    }
}
