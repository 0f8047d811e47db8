//! Requests on their way in.

use std::fs::File;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::fs::FileExt;

use pitchfork_core::http::Reject;
use pitchfork_core::message::Report;
use pitchfork_core::reactor::{Content, Count, Parcel, Settings, StoredBody};

use crate::house::{House, answer, read_to_end, readable, settings};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// The body that came with a request.
fn body(parcel: &Parcel) -> Option<Vec<u8>> {
    match &parcel.content {
        Content::Request { body: None } => None,
        Content::Request { body: Some(StoredBody::Memory(body)) } => Some(body.clone()),
        Content::Request { body: Some(StoredBody::File { file, length }) } => {
            let mut body = vec![0; usize::try_from(*length).unwrap()];
            File::from(file.try_clone().unwrap()).read_exact_at(&mut body, 0).unwrap();
            Some(body)
        }
        other => panic!("no request: {other:?}"),
    }
}

/// What the reactor remarks next.
fn remark(house: &House) -> String {
    match house.report() {
        Report::Remark(text) => text.to_string(),
        other => panic!("no remark: {other:?}"),
    }
}

#[test]
fn a_head_that_comes_byte_by_byte_is_handed_over_when_it_is_whole() {
    let house = House::new(settings());
    let mut client = house.client(0, &GET[..5]);
    client.set_nodelay(true).unwrap();
    for byte in &GET[5..] {
        house.wait_for(Count::Reading, 1);
        assert_eq!(house.counts.get(Count::HandedOver), 0);
        client.write_all(&[*byte]).unwrap();
    }
    let parcel = house.take();
    assert_eq!((&parcel.bytes[..], body(&parcel), parcel.served), (GET, None, 0));
    assert_eq!(parcel.peer, Some([127, 0, 0, 1].into()));
    house.wait_for(Count::Reading, 0);
    house.wait_for(Count::HandedOver, 1);
    answer(parcel, &mut client);
    house.leave();
}

#[test]
fn a_slow_body_is_buffered_in_memory_or_in_a_file() {
    let house = House::new(settings());
    for size in [1, 1024, 1025, 300_000] {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n");
        let sent: Vec<u8> = (0..=255).cycle().take(size).collect();
        let mut client = house.client(0, head.as_bytes());
        let (early, late) = sent.split_at(size / 2);
        client.write_all(early).unwrap();
        house.wait_for(Count::Reading, 1);
        client.write_all(late).unwrap();
        client.write_all(GET).unwrap();
        let parcel = house.take();
        assert!(body(&parcel) == Some(sent), "another body of {size} bytes");
        let is_file = matches!(parcel.content, Content::Request { body: Some(StoredBody::File { .. }) });
        assert_eq!(is_file, size > 1024);
        // What came behind it may have come in time, or not.
        let behind = parcel.bytes.strip_prefix(head.as_bytes()).unwrap();
        assert!(GET.starts_with(behind), "{}", behind.escape_ascii());
        answer(parcel, &mut client);
    }
    house.leave();
}

#[test]
fn a_chunked_body_is_decoded() {
    let house = House::new(settings());
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = house.client(0, head);
    for piece in ["5\r\nhe", "llo\r\n6;x=y\r", "\n world\r\n0\r\n", "a: b\r\n\r\n"] {
        house.wait_for(Count::Reading, 1);
        client.write_all(piece.as_bytes()).unwrap();
    }
    let parcel = house.take();
    assert_eq!((&parcel.bytes[..], body(&parcel)), (&head[..], Some(b"hello world".to_vec())));
    house.leave();
}

#[test]
fn an_idle_connection_waits_for_its_next_request() {
    let house = House::new(settings());
    let mut client = house.client(3, b"");
    house.wait_for(Count::Idle, 1);
    client.write_all(GET).unwrap();
    let parcel = house.take();
    assert_eq!((&parcel.bytes[..], parcel.served), (GET, 3));
    assert_eq!(house.counts.get(Count::Idle), 0);
    house.leave();
}

#[test]
fn a_client_that_leaves_is_let_go_and_one_that_has_only_said_all_is_served() {
    let house = House::new(settings());
    for bytes in [&b""[..], b"GET / HT"] {
        let mut client = house.client(1, bytes);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&mut client), "");
    }
    let mut client = house.client(1, &GET[..5]);
    client.write_all(&GET[5..]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    answer(house.take(), &mut client);
    house.leave();
}

#[test]
fn who_is_late_is_told_so_if_there_was_a_request() {
    let late = Settings { header_timeout: 120, keepalive_timeout: 150, body_timeout: 130, ..settings() };
    let house = House::new(late);
    let mut silent = [house.client(0, b""), house.client(1, b"")];
    let body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nx";
    let mut begun = [house.client(0, b"GET / HT"), house.client(1, b"G"), house.client(1, body)];
    for client in &mut silent {
        assert_eq!(read_to_end(client), "");
    }
    for client in &mut begun {
        let text = read_to_end(client);
        assert!(text.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{text}");
        assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
    }
    assert_eq!(house.counts.get(Count::ClosedByDeadline), 5);
    let mut said = [(); 3].map(|()| remark(&house));
    said.sort();
    let late_head = "answered 408 to 127.0.0.1: the request head did not arrive in time";
    let late_body = "answered 408 to 127.0.0.1: the client sent the request body too slowly";
    assert_eq!(said, [late_body, late_head, late_head]);
    house.leave();
}

#[test]
fn a_malformed_head_is_answered_and_disturbs_nobody() {
    let house = House::new(settings());
    let mut other = house.client(0, &GET[..5]);
    let mut client = house.client(0, b"");
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nbad line\r\n\r\n").unwrap();
    let text = read_to_end(&mut client);
    assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}");
    assert_eq!(house.counts.get(Count::Refused), 1);
    assert_eq!(remark(&house), format!("answered 400 to 127.0.0.1: {}", Reject::FieldName));
    other.write_all(&GET[5..]).unwrap();
    answer(house.take(), &mut other);
    house.leave();
}

#[test]
fn who_is_refused_gets_the_answer_even_if_he_goes_on_sending() {
    let house = House::new(settings());
    let mut client = house.client(0, b"");
    let mut flood = b"BAD REQUEST\r\n".to_vec();
    flood.resize(150_000, b'x');
    client.write_all(&flood).unwrap();
    let text = read_to_end(&mut client);
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    house.wait_for(Count::Closing, 1);
    drop(client);
    house.wait_for(Count::Closing, 0);
    house.leave();
}

#[test]
fn a_flood_of_refusals_is_not_told_of_one_by_one() {
    const COUNT: u64 = 300;
    let house = House::new(settings());
    let clients: Vec<_> = (0..COUNT).map(|_| house.client(0, b"\n")).collect();
    house.wait_for(Count::Refused, COUNT);
    drop(clients);
    house.wait_for(Count::Closing, 0);
    let mut said = 0;
    while readable(house.monitor.as_ref().unwrap()) {
        remark(&house);
        said += 1;
    }
    assert!((1..COUNT / 2).contains(&said), "{said} remarks");
    house.leave();
}
