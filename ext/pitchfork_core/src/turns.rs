//! Whose turn it is: nobody gets a second one while somebody else who is ready waits for the first.

use std::collections::VecDeque;

/// The connections that are held and ready, by their marks, in rounds: each of them has one turn in a round, between which
/// new connections have theirs. Who becomes ready meanwhile, or has another request pipelined, is in the next round.
#[derive(Debug, Default)]
pub struct Turns {
    ready: VecDeque<u64>,
    /// How many of these belong to the round.
    left: usize,
    /// Whether the last turn was that of a new connection.
    was_new: bool,
}

impl Turns {
    /// Whether nobody is left in the round.
    #[must_use]
    pub fn is_round_over(&self) -> bool {
        self.left == 0
    }

    /// Has somebody take part in the next round.
    pub fn add(&mut self, mark: u64) {
        // There are few that are there already: those that have pipelined requests.
        if !self.ready.contains(&mark) {
            self.ready.push_back(mark);
        }
    }

    /// Begins a round.
    pub fn begin_round(&mut self) {
        self.left = self.ready.len();
    }

    /// Whether somebody who is held comes before a new connection.
    #[must_use]
    pub fn is_turn_of_held(&self) -> bool {
        self.was_new && self.left > 0
    }

    /// The next one of the round.
    pub fn next_held(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        self.was_new = false;
        self.ready.pop_front()
    }

    /// A new connection has its turn.
    pub fn take_new(&mut self) {
        self.was_new = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(marks: &[u64]) -> Turns {
        let mut turns = Turns::default();
        for &mark in marks {
            turns.add(mark);
        }
        turns.begin_round();
        turns
    }

    #[test]
    fn each_has_one_turn_in_a_round() {
        let mut turns = turns(&[1, 2, 2, 3]);
        // Who has another request waits for the next round.
        assert_eq!(turns.next_held(), Some(1));
        turns.add(1);
        assert_eq!((turns.next_held(), turns.next_held(), turns.next_held()), (Some(2), Some(3), None));
        assert!(turns.is_round_over());
        turns.add(4);
        turns.begin_round();
        assert_eq!((turns.next_held(), turns.next_held(), turns.next_held()), (Some(1), Some(4), None));
    }

    #[test]
    fn new_ones_and_those_that_are_held_alternate() {
        let mut turns = turns(&[1, 2]);
        assert!(!turns.is_turn_of_held());
        turns.take_new();
        assert!(turns.is_turn_of_held());
        assert_eq!(turns.next_held(), Some(1));
        assert!(!turns.is_turn_of_held());
        turns.take_new();
        assert_eq!(turns.next_held(), Some(2));
        turns.take_new();
        assert!(!turns.is_turn_of_held(), "nobody is there");
    }
}
