//! Signs of life, and the end.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use pitchfork_core::message::Order;
use pitchfork_core::reactor::{Content, Count, Rest, Then};
use pitchfork_core::sys::clock;

use crate::house::{House, PULSE, answer, read_to_end, settings, wait_until};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LARGE: usize = 12 * 1024 * 1024;

fn response(then: Then) -> Content {
    Content::Response { rest: Rest { before: vec![b'x'; LARGE], ..Rest::default() }, then }
}

#[test]
fn an_idle_reactor_gives_signs_of_life_in_time() {
    let house = House::new(settings());
    for _ in 0..3 {
        let deadline = house.line.deadline();
        wait_until("there is another sign of life", || {
            assert!(house.line.deadline() + PULSE > clock::monotonic(), "the last one is too old");
            house.line.deadline() != deadline
        });
    }
    house.order(Order::ReopenLogs);
    house.leave();
}

#[test]
fn a_drain_ends_what_is_idle_and_waits_for_the_rest_and_for_all_others() {
    let mut house = House::new(settings());
    let mut idle = [house.client(0, b""), house.client(1, b"")];
    let mut reading = house.client(1, &GET[..5]);
    let (mut writing, connection) = house.connect();
    house.deposit(connection, 1, b"", response(Then::KeepAlive));
    for (count, value) in [(Count::Idle, 2), (Count::Reading, 1), (Count::Writing, 1)] {
        house.wait_for(count, value);
    }
    house.order(Order::Leave { drain: true });
    for client in &mut idle {
        assert_eq!(read_to_end(client), "");
    }
    // Both by somebody who came late, and by who was there before.
    let mut late = house.client(0, b"");
    assert_eq!(read_to_end(&mut late), "");
    let mut late = house.client(0, GET);
    answer(house.take(), &mut late);
    reading.write_all(&GET[5..]).unwrap();
    answer(house.take(), &mut reading);
    let mut text = vec![0; LARGE];
    writing.read_exact(&mut text).unwrap();
    assert_eq!(read_to_end(&mut writing), "");
    drop((idle, writing));
    let gauges = [Count::Idle, Count::Reading, Count::Writing, Count::Closing];
    wait_until("nothing is left", || gauges.iter().all(|gauge| house.counts.get(*gauge) == 0));
    // A worker may have a response for it still.
    let (mut writing, connection) = house.connect();
    house.deposit(connection, 1, b"", response(Then::KeepAlive));
    house.wait_for(Count::Writing, 1);
    house.order(Order::Conclude);
    writing.read_exact(&mut text).unwrap();
    assert_eq!(read_to_end(&mut writing), "");
    drop(writing);
    assert_eq!(house.status(), 0);
    assert_eq!(gauges.map(|gauge| house.counts.get(gauge)), [0; 4]);
}

#[test]
fn when_nobody_else_is_left_only_responses_are_waited_for() {
    let mut house = House::new(settings());
    let mut reading = house.client(1, &GET[..5]);
    let (mut writing, connection) = house.connect();
    house.deposit(connection, 1, b"", response(Then::Close));
    house.wait_for(Count::Writing, 1);
    house.order(Order::Leave { drain: true });
    house.order(Order::Conclude);
    assert_eq!(reading.read(&mut [0]).unwrap_or(0), 0, "it is closed or reset");
    // From a worker's last moments.
    let mut late = house.client(1, &GET[..5]);
    assert_eq!(late.read(&mut [0]).unwrap_or(0), 0);
    assert!(house.is_running());
    let mut text = vec![0; LARGE];
    writing.read_exact(&mut text).unwrap();
    drop(writing);
    assert_eq!(house.status(), 0);
}

#[test]
fn an_immediate_stop_waits_for_nobody() {
    let mut house = House::new(settings());
    let _reading = house.client(1, &GET[..5]);
    let (_writing, connection) = house.connect();
    house.deposit(connection, 1, b"", response(Then::Close));
    house.wait_for(Count::Writing, 1);
    house.order(Order::Leave { drain: false });
    assert_eq!(house.status(), 0);
}

#[test]
fn a_reactor_whose_channel_is_closed_leaves_when_it_has_nothing_left() {
    let mut house = House::new(settings());
    let mut reading = house.client(1, &GET[..5]);
    house.wait_for(Count::Reading, 1);
    house.monitor = None;
    let mut idle = house.client(1, b"");
    assert_eq!(read_to_end(&mut idle), "");
    assert!(house.is_running());
    reading.write_all(&GET[5..]).unwrap();
    house.take();
    drop(idle);
    assert_eq!(house.status(), 0);
}

#[test]
fn a_reactor_without_a_monitor_leaves_soon_whatever_its_clients_do() {
    let mut house = House::new(settings());
    let (_client, connection) = house.connect();
    house.deposit(connection, 1, b"", response(Then::Close));
    house.wait_for(Count::Writing, 1);
    let began = Instant::now();
    house.death.write_all(b"!").unwrap();
    assert_eq!(house.status(), 1);
    assert!(began.elapsed() >= Duration::from_secs(3), "its clients had no time");
}
