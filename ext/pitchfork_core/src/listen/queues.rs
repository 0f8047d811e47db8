//! Which worker serves which of several queues of one address.

/// The queues, of `queues` that share an address, that worker `nr` serves while the workers `present` are at work.
///
/// Each worker has `per_worker` of them in a row, beginning with the one of its number, around the ring. A queue in
/// nobody's row is served as well by one of those present, each of whom gets as many of these as the others, give or
/// take one. So every queue has a worker whoever is missing, and as long as anybody is there.
///
/// `present` is sorted; whether `nr` is among them makes no difference to its row.
#[must_use]
pub fn served_by(nr: u32, queues: usize, per_worker: usize, present: &[u32]) -> Vec<usize> {
    let mut served: Vec<usize> = row(nr, queues, per_worker).collect();
    if let Ok(rank) = present.binary_search(&nr) {
        let mut is_served = vec![false; queues];
        for queue in present.iter().flat_map(|&other| row(other, queues, per_worker)) {
            is_served[queue] = true;
        }
        let orphans = (0..queues).filter(|&queue| !is_served[queue]);
        served.extend(orphans.skip(rank).step_by(present.len()));
    }
    served
}

fn row(nr: u32, queues: usize, per_worker: usize) -> impl Iterator<Item = usize> {
    (0..per_worker.clamp(1, queues)).map(move |step| (nr as usize + step) % queues)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_worker_has_a_row_of_its_own() {
        let present = [0, 1, 2, 3];
        assert_eq!(served_by(0, 4, 1, &present), [0]);
        assert_eq!(served_by(3, 4, 1, &present), [3]);
        assert_eq!(served_by(3, 4, 3, &present), [3, 0, 1]);
        assert_eq!(served_by(5, 4, 3, &[0, 1, 2, 3, 4, 5]), [1, 2, 3]);
    }

    #[test]
    fn one_worker_alone_serves_everything() {
        assert_eq!(served_by(2, 4, 1, &[2]), [2, 0, 1, 3]);
        assert_eq!(served_by(0, 1, 1, &[0]), [0]);
    }

    #[test]
    fn the_queues_of_the_missing_are_shared_out() {
        assert_eq!(served_by(0, 4, 1, &[0, 1]), [0, 2]);
        assert_eq!(served_by(1, 4, 1, &[0, 1]), [1, 3]);
    }

    #[test]
    fn a_worker_that_is_not_counted_yet_begins_with_its_row() {
        assert_eq!(served_by(1, 4, 2, &[0]), [1, 2]);
    }

    proptest! {
        #[test]
        fn every_queue_is_served_and_nobody_has_more_than_a_share(
            queues in 1usize..12,
            per_worker in 1usize..14,
            present in prop::collection::btree_set(0u32..40, 1..20),
        ) {
            let present: Vec<u32> = present.into_iter().collect();
            let all: Vec<Vec<usize>> =
                present.iter().map(|&nr| served_by(nr, queues, per_worker, &present)).collect();
            let union: BTreeSet<usize> = all.iter().flatten().copied().collect();
            prop_assert_eq!(union, (0..queues).collect::<BTreeSet<_>>());
            for one in &all {
                prop_assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), one.len(), "{:?} has doubles", one);
                prop_assert!(one.len() >= per_worker.min(queues));
            }
            let (least, most) = (all.iter().map(Vec::len).min(), all.iter().map(Vec::len).max());
            prop_assert!(most.unwrap() - least.unwrap() <= 1);
        }

        #[test]
        fn nobody_has_more_than_asked_for_once_there_are_enough(
            queues in 1usize..12,
            per_worker in 1usize..14,
            more in 0u32..20,
        ) {
            let present: Vec<u32> = (0..u32::try_from(queues).unwrap() + more).collect();
            for &nr in &present {
                prop_assert_eq!(served_by(nr, queues, per_worker, &present).len(), per_worker.min(queues));
            }
        }

        #[test]
        fn queues_are_as_popular_as_each_other(queues in 1usize..12, per_worker in 1usize..14, rounds in 1u32..5) {
            let workers = u32::try_from(queues).unwrap() * rounds;
            let present: Vec<u32> = (0..workers).collect();
            let mut takers = vec![0; queues];
            for &nr in &present {
                for queue in served_by(nr, queues, per_worker, &present) {
                    takers[queue] += 1;
                }
            }
            prop_assert!(takers.iter().all(|&count| count == takers[0]), "{:?}", takers);
        }
    }
}
