//! Who is due when: a binary heap in which everybody has at most one place, and knows it.

use crate::children::Millis;

const NOWHERE: u32 = u32::MAX;

/// The times of small numbers. Setting, moving and taking one away costs the logarithm of how many there are.
#[derive(Debug, Default)]
pub struct Timers {
    heap: Vec<(Millis, u32)>,
    /// Where in the heap each number stands.
    places: Vec<u32>,
}

impl Timers {
    /// The earliest time, and a number that is due then.
    #[must_use]
    pub fn first(&self) -> Option<(Millis, u32)> {
        self.heap.first().copied()
    }

    /// Sets the time of a number, or takes it away.
    pub fn set(&mut self, number: u32, time: Option<Millis>) {
        let place = self.places.get(number as usize).copied().filter(|&place| place != NOWHERE);
        match (place, time) {
            (None, None) => {}
            (None, Some(time)) => {
                if self.places.len() <= number as usize {
                    self.places.resize(number as usize + 1, NOWHERE);
                }
                self.heap.push((time, number));
                self.settle(self.heap.len() - 1);
            }
            (Some(place), Some(time)) => {
                self.heap[place as usize].0 = time;
                self.settle(place as usize);
            }
            (Some(place), None) => {
                self.heap.swap_remove(place as usize);
                self.places[number as usize] = NOWHERE;
                if (place as usize) < self.heap.len() {
                    self.settle(place as usize);
                }
            }
        }
    }

    /// Moves an entry to where it belongs: everything else is in order.
    fn settle(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 && entry < self.heap[(at - 1) / 2] {
            self.put(at, self.heap[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        while let Some(child) = (2 * at + 1..self.heap.len().min(2 * at + 3)).min_by_key(|&child| self.heap[child])
            && self.heap[child] < entry
        {
            self.put(at, self.heap[child]);
            at = child;
        }
        self.put(at, entry);
    }

    #[allow(clippy::cast_possible_truncation)] // there are fewer places than numbers
    fn put(&mut self, at: usize, entry: (Millis, u32)) {
        self.heap[at] = entry;
        self.places[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn the_first_is_the_earliest(changes in vec((0..40u32, proptest::option::weighted(0.7, 0..100u64)), 0..300)) {
            let mut timers = Timers::default();
            let mut model = BTreeMap::new();
            for (number, time) in changes {
                timers.set(number, time);
                match time {
                    Some(time) => model.insert(number, time),
                    None => model.remove(&number),
                };
                let sorted: BTreeSet<_> = model.iter().map(|(number, time)| (*time, *number)).collect();
                prop_assert_eq!(timers.first(), sorted.first().copied());
                prop_assert_eq!(timers.heap.len(), model.len());
            }
            let mut order = Vec::new();
            while let Some((time, number)) = timers.first() {
                order.push((time, number));
                timers.set(number, None);
            }
            let sorted: BTreeSet<_> = model.into_iter().map(|(number, time)| (time, number)).collect();
            prop_assert_eq!(order, sorted.into_iter().collect::<Vec<_>>());
        }
    }
}
