//! All connections of a reactor: who is where, who is due next, and what there is to count. No I/O, no clock.

use std::net::IpAddr;

use super::counts::{Count, Counts};
use super::machine::{Action, Circumstances, Connection, Event, Phase};
use super::refusal::Refusal;
use super::timers::Timers;
use crate::children::Millis;

/// Names one connection for as long as it is here. A place is used again, its name is not, or not before four thousand
/// million others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    place: u32,
    serial: u32,
}

impl Key {
    /// As one number, whose upper half is the place.
    #[must_use]
    pub fn number(self) -> u64 {
        u64::from(self.place) << 32 | u64::from(self.serial)
    }

    /// The key of this number.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the upper and the lower half
    pub fn from_number(number: u64) -> Self {
        Self { place: (number >> 32) as u32, serial: number as u32 }
    }
}

#[derive(Debug)]
struct Entry<T> {
    serial: u32,
    connection: Connection,
    outside: T,
}

/// The connections, each with what belongs to it outside: its descriptors.
#[derive(Debug)]
pub struct Pool<T> {
    places: Vec<Option<Box<Entry<T>>>>,
    vacant: Vec<u32>,
    serial: u32,
    deadlines: Timers,
    /// The idle ones, by the time since when they are idle.
    idle: Timers,
    memory: usize,
    counts: Counts,
    refused: Option<(Option<IpAddr>, Refusal)>,
}

impl<T> Pool<T> {
    /// No connections.
    #[must_use]
    pub fn new(counts: Counts) -> Self {
        Self {
            places: Vec::new(),
            vacant: Vec::new(),
            serial: 0,
            deadlines: Timers::default(),
            idle: Timers::default(),
            memory: 0,
            counts,
            refused: None,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes they hold in memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Takes a connection. [`Event::Arrived`] is to be the next that is said of it.
    pub fn insert(&mut self, connection: Connection, outside: T) -> Key {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(None);
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        self.serial = self.serial.wrapping_add(1);
        self.memory += size_of::<Entry<T>>() + connection.memory();
        self.counts.add(gauge(connection.phase()));
        self.places[place as usize] = Some(Box::new(Entry { serial: self.serial, connection, outside }));
        Key { place, serial: self.serial }
    }

    /// Says what has happened to a connection, and what is to be done with it; `None` if it is not here any more.
    pub fn step(&mut self, key: Key, event: Event<'_>, at: &Circumstances<'_>) -> Option<Action> {
        let entry = self.places.get_mut(key.place as usize)?.as_mut().filter(|entry| entry.serial == key.serial)?;
        let connection = &mut entry.connection;
        let (before, refused, memory) = (connection.phase(), connection.refusal(), connection.memory());
        let action = connection.step(event, at);
        let after = connection.phase();
        self.memory = self.memory + connection.memory() - memory;
        self.deadlines.set(key.place, connection.deadline(at.settings));
        self.idle.set(key.place, (after == Phase::Idle).then_some(connection.since()));
        if before != after {
            self.counts.subtract(gauge(before));
            self.counts.add(gauge(after));
        }
        match event {
            Event::Due if before != after && before != Phase::Closing => self.counts.add(Count::ClosedByDeadline),
            Event::Displaced if before != after => self.counts.add(Count::Displaced),
            Event::Due | Event::Displaced => {}
            _ if connection.refusal().is_some() && refused.is_none() => self.counts.add(Count::Refused),
            _ => {}
        }
        if let (Some(refusal), None) = (connection.refusal(), refused) {
            self.refused = Some((connection.peer(), refusal));
        }
        Some(action)
    }

    /// Who was refused, and why, if somebody was in the last step.
    pub fn take_refused(&mut self) -> Option<(Option<IpAddr>, Refusal)> {
        self.refused.take()
    }

    /// A connection and what belongs to it.
    pub fn get_mut(&mut self, key: Key) -> Option<(&Connection, &mut T)> {
        let entry = self.places.get_mut(key.place as usize)?.as_mut().filter(|entry| entry.serial == key.serial)?;
        Some((&entry.connection, &mut entry.outside))
    }

    /// Gives a connection out.
    pub fn remove(&mut self, key: Key) -> Option<(Connection, T)> {
        self.get_mut(key)?;
        let Entry { connection, outside, .. } = *self.places.get_mut(key.place as usize)?.take()?;
        self.vacant.push(key.place);
        self.deadlines.set(key.place, None);
        self.idle.set(key.place, None);
        self.memory -= size_of::<Entry<T>>() + connection.memory();
        self.counts.subtract(gauge(connection.phase()));
        Some((connection, outside))
    }

    /// When the first deadline is.
    #[must_use]
    pub fn first_deadline(&self) -> Option<Millis> {
        self.deadlines.first().map(|(deadline, _)| deadline)
    }

    /// Some connection whose deadline has come.
    #[must_use]
    pub fn due(&self, now: Millis) -> Option<Key> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).and_then(|(_, place)| self.key(place))
    }

    /// The connection that has been idle longest.
    #[must_use]
    pub fn longest_idle(&self) -> Option<Key> {
        self.idle.first().and_then(|(_, place)| self.key(place))
    }

    /// All connections.
    #[must_use]
    pub fn keys(&self) -> Vec<Key> {
        (0..).zip(&self.places).filter_map(|(place, _)| self.key(place)).collect()
    }

    fn key(&self, place: u32) -> Option<Key> {
        let serial = self.places.get(place as usize)?.as_ref()?.serial;
        Some(Key { place, serial })
    }
}

fn gauge(phase: Phase) -> Count {
    match phase {
        Phase::Idle => Count::Idle,
        Phase::Reading => Count::Reading,
        Phase::Ready => Count::Ready,
        Phase::Writing => Count::Writing,
        Phase::Closing => Count::Closing,
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
