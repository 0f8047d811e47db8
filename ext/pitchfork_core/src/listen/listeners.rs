//! All sockets of a server.

use super::{Listener, served_by};

/// The sockets of all addresses. Those of one address are its queues.
#[derive(Debug, Default)]
pub struct Listeners {
    sockets: Vec<Listener>,
    groups: Vec<Group>,
}

/// The sockets of one address: so many of them, from `first` on.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: usize,
    queues: usize,
    per_worker: usize,
}

impl Listeners {
    /// Adds the queues of one address, of which each worker shall serve `per_worker`.
    pub fn add(&mut self, queues: Vec<Listener>, per_worker: usize) {
        self.groups.push(Group { first: self.sockets.len(), queues: queues.len(), per_worker });
        self.sockets.extend(queues);
    }

    /// The sockets, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Listener> {
        self.sockets.iter()
    }

    /// One socket, by its place in that order.
    #[must_use]
    pub fn get(&self, at: usize) -> &Listener {
        &self.sockets[at]
    }

    /// Whether a worker may have to leave a queue to others.
    #[must_use]
    pub fn are_shared_out(&self) -> bool {
        self.groups.iter().any(|group| group.per_worker < group.queues)
    }

    /// The places of the sockets that worker `nr` serves while the workers `present`, in order, are at work.
    #[must_use]
    pub fn served_by(&self, nr: u32, present: &[u32]) -> Vec<usize> {
        let served = self.groups.iter().flat_map(|group| {
            served_by(nr, group.queues, group.per_worker, present).into_iter().map(|queue| group.first + queue)
        });
        served.collect()
    }

    /// The places of the sockets whose queues are emptied before the server ends: all that are its own. What waits
    /// in a supervisor's socket is for whoever gets it next.
    #[must_use]
    pub fn to_be_emptied(&self) -> Vec<usize> {
        (0..self.sockets.len()).filter(|&at| !self.sockets[at].is_inherited()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::Options;

    fn queues(count: usize) -> Vec<Listener> {
        let bind = |_| Listener::bind("127.0.0.1:0".parse().unwrap(), Options::default()).unwrap();
        (0..count).map(bind).collect()
    }

    #[test]
    fn the_queues_of_each_address_are_shared_out_by_themselves() {
        let mut listeners = Listeners::default();
        listeners.add(queues(1), 1);
        assert!(!listeners.are_shared_out());
        listeners.add(queues(3), 2);
        assert!(listeners.are_shared_out());
        assert_eq!(listeners.served_by(1, &[0, 1]), [0, 2, 3]);
        assert_eq!(listeners.served_by(2, &[0, 1, 2]), [0, 3, 1]);
        assert_eq!(listeners.to_be_emptied(), [0, 1, 2, 3]);
    }
}
