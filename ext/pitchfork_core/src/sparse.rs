//! Which pages of memory have so little room that a copy of them is dear.

use std::collections::{HashMap, HashSet};

/// Bytes of a page, the unit in which the kernel copies what a child writes to. Where pages are larger, neighbours count
/// apart, and still each is judged by how much room it has.
const PAGE: usize = 4096;

/// The slots of one size that are free, counted by page.
#[derive(Debug, Default)]
pub struct FreeSlots(HashMap<usize, usize>);

impl FreeSlots {
    /// Counts one that begins at this address.
    pub fn add(&mut self, address: usize) {
        *self.0.entry(address / PAGE).or_default() += 1;
    }

    /// The fullest pages: those with at most so many free slots, as many of them as have no more than `room` together.
    #[must_use]
    pub fn sparse(self, most: usize, room: usize) -> Pages {
        let mut pages: Vec<(usize, usize)> = self.0.into_iter().map(|(page, free)| (free, page)).collect();
        pages.sort_unstable();
        let mut left = room;
        let fitting = pages.into_iter().map_while(|(free, page)| {
            left = left.checked_sub(free).filter(|_| free <= most)?;
            Some(page)
        });
        Pages(fitting.collect())
    }
}

/// Some pages.
#[derive(Debug)]
pub struct Pages(HashSet<usize>);

impl Pages {
    /// Whether the page of this address is one of them.
    #[must_use]
    pub fn contain(&self, address: usize) -> bool {
        self.0.contains(&(address / PAGE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of pages with so many free slots each are sparse.
    fn sparse(free: &[usize], most: usize, room: usize) -> Vec<usize> {
        let mut all = FreeSlots::default();
        for (number, &free) in free.iter().enumerate() {
            for slot in 0..free {
                all.add(number * PAGE + slot * 40);
            }
        }
        let pages = all.sparse(most, room);
        (0..free.len()).filter(|number| pages.contain(number * PAGE + PAGE - 1)).collect()
    }

    #[test]
    fn the_fullest_pages_come_first() {
        assert_eq!(sparse(&[10, 5, 20, 5], 100, 35), [0, 1, 3]);
        assert_eq!(sparse(&[10, 5, 20, 5], 100, 40), [0, 1, 2, 3]);
        assert_eq!(sparse(&[10, 5, 20, 6], 100, 9), [1]);
        assert_eq!(sparse(&[10, 5, 20, 5], 100, 9).len(), 1, "one of two that are alike");
        assert!(sparse(&[10, 5, 20, 5], 100, 4).is_empty());
    }

    #[test]
    fn pages_with_much_room_are_not_sparse() {
        assert_eq!(sparse(&[10, 60, 61], 60, usize::MAX), [0, 1]);
        assert!(sparse(&[10, 60, 61], 9, usize::MAX).is_empty());
    }

    #[test]
    fn full_pages_are_unknown() {
        assert!(sparse(&[0, 0], 60, 100).is_empty());
    }
}
