//! The queue of whole requests.

use std::io::Read;
use std::os::unix::net::UnixStream;

use pitchfork_core::children::Millis;
use pitchfork_core::reactor::{Content, Count, Parcel, StoredBody};

use crate::house::{House, settings, wait_until};

/// A connection with a whole request on it that says a number and is so long that few of them fill the queue.
fn parcel(number: u64) -> (Parcel, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut bytes = format!("GET /{number} HTTP/1.1\r\nHost: a\r\nX: ").into_bytes();
    bytes.resize(12_000, b'x');
    bytes.extend_from_slice(b"\r\n\r\n");
    let content = Content::Waiting;
    (Parcel { socket: ours.into(), peer: None, served: 0, since: Millis::MAX, bytes, content }, theirs)
}

#[test]
fn requests_wait_for_room_in_their_order_and_none_is_lost() {
    const COUNT: u64 = 600;
    let house = House::new(settings());
    let clients: Vec<_> = (0..COUNT)
        .map(|number| {
            let (parcel, client) = parcel(number);
            house.send(&parcel);
            client
        })
        .collect();
    let waiting = || house.counts.get(Count::Ready);
    wait_until("they all are ready", || waiting() + house.counts.get(Count::HandedOver) == COUNT);
    assert!(waiting() > 0, "the queue holds all of them");
    // The first half makes room for the second, and each is told of it.
    for number in 0..COUNT {
        let parcel = house.take();
        let text = String::from_utf8_lossy(&parcel.bytes);
        assert!(text.starts_with(&format!("GET /{number} HTTP")), "{}", &text[..20]);
    }
    house.wait_for(Count::HandedOver, COUNT);
    house.wait_for(Count::Ready, 0);
    drop(clients);
    house.leave();
}

#[test]
fn a_request_that_comes_back_is_nobodys() {
    let mut house = House::new(settings());
    let (first, mut client) = parcel(1);
    let content = Content::Request { body: Some(StoredBody::Memory(b"body".to_vec())) };
    house.send(&Parcel { content, ..first });
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    let (second, _client) = parcel(2);
    house.send(&second);
    assert!(house.take().bytes.starts_with(b"GET /2 "));
    assert_eq!(house.counts.get(Count::Lost), 1);
    assert!(house.log.lock().unwrap()[0].contains("belongs to a worker"));
    house.monitor = None;
    assert_eq!(house.status(), 0);
}

#[test]
fn what_is_no_connection_is_counted_and_the_next_one_is_served() {
    let mut house = House::new(settings());
    pitchfork_core::sys::packet::send(&house.queues.deposits.0, &[b"nonsense"], &[]).unwrap();
    let (parcel, _client) = parcel(1);
    house.send(&parcel);
    house.take();
    assert_eq!(house.counts.get(Count::Lost), 1);
    assert!(house.log.lock().unwrap()[0].contains("malformed packet"));
    house.monitor = None;
    assert_eq!(house.status(), 0);
}
