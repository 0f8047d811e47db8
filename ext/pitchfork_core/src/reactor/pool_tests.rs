use super::*;
use crate::http::Limits;
use crate::reactor::machine::Origin;
use crate::reactor::{Outgoing, Settings, Then};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

const PIECES: [&[u8]; 9] = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTT",
    b"P/1.1\r\nHost: a\r\n",
    b"\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"8\r\nabcdefgh\r\n0\r\n\r\n",
    b"0123456789",
    b"\n",
];

fn settings() -> Settings {
    Settings {
        limits: Limits::default(),
        header_timeout: 100,
        keepalive_timeout: 700,
        body_timeout: 150,
        min_rate: 50,
        write_timeout: 200,
        body_memory: 12,
        rewindable: true,
    }
}

/// Something that happens to one of the connections, or to all.
#[derive(Clone, Debug)]
enum Happening {
    Arrives { served: u32, bytes: &'static [u8] },
    MustWrite { length: usize, close: bool },
    Sends(usize, &'static [u8]),
    Ends(usize),
    Breaks(usize),
    Takes(usize, u64),
    Displaced,
    Early(usize),
    Passes(Millis),
    Drain,
}

fn happenings() -> impl Strategy<Value = Happening> {
    let piece = || select(&PIECES[..]);
    prop_oneof![
        4 => (0..2u32, prop_oneof![Just(&b""[..]), piece()]).prop_map(|(served, bytes)| Happening::Arrives { served, bytes }),
        2 => (0..30usize, any::<bool>()).prop_map(|(length, close)| Happening::MustWrite { length, close }),
        8 => (any::<usize>(), piece()).prop_map(|(which, bytes)| Happening::Sends(which, bytes)),
        1 => any::<usize>().prop_map(Happening::Ends),
        1 => any::<usize>().prop_map(Happening::Breaks),
        4 => (any::<usize>(), 0..20u64).prop_map(|(which, bytes)| Happening::Takes(which, bytes)),
        1 => Just(Happening::Displaced),
        2 => any::<usize>().prop_map(Happening::Early),
        6 => (0..120u64).prop_map(Happening::Passes),
    ]
}

/// A reactor without a world: the pool, and what has become of the connections that left it.
struct World {
    pool: Pool<u32>,
    settings: Settings,
    now: Millis,
    draining: bool,
    arrived: u32,
    handed_over: Vec<u32>,
    closed: Vec<u32>,
}

impl World {
    fn new() -> Self {
        let pool = Pool::new(Counts::new().unwrap());
        let (handed_over, closed) = (Vec::new(), Vec::new());
        Self { pool, settings: settings(), now: 0, draining: false, arrived: 0, handed_over, closed }
    }

    fn step(&mut self, key: Key, event: Event<'_>) -> Option<Action> {
        let settings = self.settings;
        let at = Circumstances { settings: &settings, now: self.now, date: DATE, draining: self.draining };
        self.pool.step(key, event, &at)
    }

    /// Says what has happened, and does what is to be done until there is something to wait for.
    fn tell(&mut self, key: Key, event: Event<'_>) {
        let mut action = self.step(key, event).unwrap();
        loop {
            action = match action {
                Action::Read | Action::Write => return,
                Action::Store => self.step(key, Event::Stored).unwrap(),
                Action::HalfClose => self.step(key, Event::HalfClosed).unwrap(),
                Action::HandOver | Action::Close => {
                    let (connection, id) = self.pool.remove(key).unwrap();
                    let left = if action == Action::Close { &mut self.closed } else { &mut self.handed_over };
                    left.push(id);
                    assert_eq!(connection.into_request().is_some(), action == Action::HandOver);
                    assert!(self.step(key, Event::Arrived).is_none());
                    return;
                }
            }
        }
    }

    fn some(&self, which: usize) -> Option<Key> {
        let keys = self.pool.keys();
        keys.get(which % keys.len().max(1)).copied()
    }

    fn arrive(&mut self, connection: Connection) {
        self.arrived += 1;
        let key = self.pool.insert(connection, self.arrived);
        self.tell(key, Event::Arrived);
    }

    fn happen(&mut self, happening: &Happening) {
        let origin = |served| Origin { peer: None, served, since: self.now };
        match happening {
            Happening::Arrives { served, bytes } => self.arrive(Connection::waiting(origin(*served), bytes.to_vec())),
            Happening::MustWrite { length, close } => {
                let then = if *close { Then::Close } else { Then::KeepAlive };
                let response = Outgoing::new(vec![b'x'; *length], Some((3, *length as u64)), b"x".to_vec(), then);
                self.arrive(Connection::writing(origin(0), PIECES[*length % PIECES.len()].to_vec(), response));
            }
            Happening::Passes(time) => self.pass(*time),
            Happening::Drain => {
                self.draining = true;
                self.pool.keys().into_iter().for_each(|key| self.tell(key, Event::Drain));
                assert_eq!(self.pool.counts.get(Count::Idle), 0);
            }
            Happening::Displaced => {
                if let Some(key) = self.pool.longest_idle() {
                    self.tell(key, Event::Displaced);
                    assert!(self.pool.get_mut(key).is_none());
                }
            }
            Happening::Early(which) => {
                let Some(key) = self.some(*which) else { return };
                let (connection, _) = self.pool.get_mut(key).unwrap();
                let before = (connection.action(), connection.phase());
                let action = self.step(key, Event::Due).unwrap();
                assert_eq!((action, self.pool.get_mut(key).unwrap().0.phase()), before, "given up too early");
            }
            Happening::Sends(which, bytes) => self.tell_some(*which, Event::Received(bytes)),
            Happening::Ends(which) => self.tell_some(*which, Event::Ended),
            Happening::Breaks(which) => self.tell_some(*which, Event::Broken),
            Happening::Takes(which, bytes) => self.tell_some(*which, Event::Written(*bytes)),
        }
    }

    fn tell_some(&mut self, which: usize, event: Event<'_>) {
        if let Some(key) = self.some(which) {
            self.tell(key, event);
        }
    }

    /// Lets time pass as a loop does that sleeps until the first deadline.
    fn pass(&mut self, time: Millis) {
        let end = self.now + time;
        while let Some(next) = self.pool.first_deadline().filter(|next| *next <= end) {
            assert!(next >= self.now, "a deadline was missed");
            self.now = next;
            while let Some(key) = self.pool.due(self.now) {
                let before = self.pool.get_mut(key).unwrap().0.phase();
                self.tell(key, Event::Due);
                let after = self.pool.get_mut(key).map(|(connection, _)| connection.phase());
                assert_ne!(after, Some(before), "its time is over, and nothing comes of it");
            }
        }
        self.now = end;
    }

    fn check(&self) {
        let pool = &self.pool;
        let entries: Vec<_> =
            (0..).zip(&pool.places).filter_map(|(place, entry)| Some((place, entry.as_ref()?))).collect();
        let all = |phase| entries.iter().filter(|(_, entry)| entry.connection.phase() == phase).count() as u64;
        for phase in [Phase::Idle, Phase::Reading, Phase::Ready, Phase::Writing, Phase::Closing] {
            assert_eq!(pool.counts.get(gauge(phase)), all(phase), "{phase:?}");
        }
        assert_eq!(all(Phase::Ready), 0, "a request was forgotten");
        let deadlines =
            entries.iter().map(|(place, entry)| (entry.connection.deadline(&self.settings).unwrap(), *place));
        assert_eq!(pool.deadlines.first(), deadlines.min(), "the first deadline is not the first");
        let idle = entries.iter().filter(|(_, entry)| entry.connection.phase() == Phase::Idle);
        assert_eq!(pool.idle.first(), idle.map(|(place, entry)| (entry.connection.since(), *place)).min());
        let memory = entries.iter().map(|(_, entry)| size_of::<Entry<u32>>() + entry.connection.memory());
        assert_eq!(pool.memory(), memory.sum::<usize>());
        let mut ids: Vec<u32> = entries.iter().map(|(_, entry)| entry.outside).collect();
        ids.extend(self.handed_over.iter().chain(&self.closed));
        ids.sort_unstable();
        assert_eq!(ids, (1..=self.arrived).collect::<Vec<_>>(), "a connection is lost, or in two places");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nobody_is_lost_late_or_early(history in vec(happenings(), 0..150), end in vec(happenings(), 0..40)) {
        let mut world = World::new();
        let drain = [Happening::Drain];
        for happening in history.iter().chain(&drain).chain(&end) {
            world.happen(happening);
            world.check();
        }
        // However slowly they were, in the end their deadlines take the last of them.
        for _ in 0..100 {
            world.pass(100);
            world.check();
        }
        prop_assert!(world.pool.is_empty());
        prop_assert_eq!(world.pool.memory(), 0);
    }
}

#[test]
fn a_place_that_is_used_again_does_not_answer_to_its_old_name() {
    let mut world = World::new();
    world.arrive(Connection::waiting(Origin { peer: None, served: 0, since: 0 }, Vec::new()));
    let old = world.some(0).unwrap();
    world.tell(old, Event::Ended);
    world.arrive(Connection::waiting(Origin { peer: None, served: 0, since: 0 }, Vec::new()));
    let new = world.some(0).unwrap();
    assert_eq!((old.place, new.place), (0, 0));
    assert!(world.step(old, Event::Ended).is_none() && world.pool.get_mut(old).is_none());
    assert!(world.pool.remove(old).is_none());
    assert_eq!(Key::from_number(new.number()), new);
    assert!(world.pool.get_mut(new).is_some());
}

#[test]
fn what_has_been_is_counted() {
    let mut world = World::new();
    let arrive = |served, bytes| Happening::Arrives { served, bytes };
    world.happen(&arrive(0, b""));
    world.happen(&arrive(0, b"GET / HTT"));
    world.happen(&arrive(0, b"\n"));
    world.happen(&arrive(1, b""));
    world.happen(&Happening::Passes(110));
    world.happen(&Happening::Displaced);
    let count = |count| world.pool.counts.get(count);
    assert_eq!([Count::ClosedByDeadline, Count::Refused, Count::Displaced].map(count), [2, 1, 1]);
}
