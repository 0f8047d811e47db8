//! Responses on their way out.

use std::io::{Read, Write};
use std::net::TcpStream;

use pitchfork_core::reactor::{Content, Count, FilePart, Rest, Settings, Then};

use crate::house::{House, read_to_end, settings};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/// More than all buffers of a connection on this machine hold.
const LARGE: usize = 12 * 1024 * 1024;

fn bytes(length: usize) -> Vec<u8> {
    (0..251).cycle().take(length).collect()
}

fn read(client: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut text = vec![0; length];
    client.read_exact(&mut text).unwrap();
    text
}

#[test]
fn a_slow_reader_gets_everything_and_may_ask_again() {
    let house = House::new(settings());
    let (mut client, connection) = house.connect();
    let rest = Rest { before: bytes(LARGE), ..Rest::default() };
    house.deposit(connection, 1, b"", Content::Response { rest, then: Then::KeepAlive });
    // It stays there for as long as nobody reads, while what the client sends meanwhile waits in its socket.
    house.wait_for(Count::Writing, 1);
    client.write_all(GET).unwrap();
    assert_eq!(read(&mut client, 100_000), bytes(100_000));
    assert_eq!((house.counts.get(Count::Writing), house.counts.get(Count::HandedOver)), (1, 0));
    let rest = read(&mut client, LARGE - 100_000);
    assert!(rest == bytes(LARGE)[100_000..], "other bytes");
    assert_eq!(house.take().bytes, GET);
    house.leave();
}

#[test]
fn a_file_is_sent_between_its_head_and_its_end() {
    let house = House::new(settings());
    let (mut client, connection) = house.connect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes(LARGE)).unwrap();
    let part = FilePart { file: file.into(), offset: 7, length: LARGE as u64 - 9 };
    let rest = Rest { before: b"head".to_vec(), file: Some(part), after: b"end".to_vec() };
    house.deposit(connection, 1, b"", Content::Response { rest, then: Then::Close });
    house.wait_for(Count::Writing, 1);
    assert_eq!(read(&mut client, 4), b"head");
    assert!(read(&mut client, LARGE - 9) == bytes(LARGE)[7..LARGE - 2], "another file");
    assert_eq!(read_to_end(&mut client), "end");
    house.leave();
}

#[test]
fn a_connection_that_would_block_keeps_nobody_waiting() {
    let house = House::new(settings());
    let (_client, connection) = house.connect();
    let connection = TcpStream::from(connection);
    connection.set_nonblocking(false).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(LARGE as u64).unwrap();
    let part = FilePart { file: file.into(), offset: 0, length: LARGE as u64 };
    let rest = Rest { file: Some(part), ..Rest::default() };
    house.deposit(connection.into(), 1, b"", Content::Response { rest, then: Then::Close });
    let _another = house.client(0, GET);
    house.take();
    house.leave_at_once();
}

#[test]
fn a_file_that_has_become_shorter_ends_the_connection() {
    let house = House::new(settings());
    let (mut client, connection) = house.connect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"short").unwrap();
    let part = FilePart { file: file.into(), offset: 0, length: 9 };
    let rest = Rest { before: Vec::new(), file: Some(part), after: b"end".to_vec() };
    house.deposit(connection, 1, GET, Content::Response { rest, then: Then::KeepAlive });
    assert_eq!(read_to_end(&mut client), "short");
    house.wait_for(Count::Writing, 0);
    assert_eq!(house.counts.get(Count::HandedOver), 0);
    house.leave();
}

#[test]
fn the_body_after_a_file_that_was_sent_is_not_written_into_it() {
    let house = House::new(settings());
    let (mut client, connection) = house.connect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"precious").unwrap();
    let part = FilePart { file: file.try_clone().unwrap().into(), offset: 0, length: 8 };
    let rest = Rest { file: Some(part), ..Rest::default() };
    house.deposit(connection, 1, b"", Content::Response { rest, then: Then::KeepAlive });
    assert_eq!(read(&mut client, 8), b"precious");
    client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n").unwrap();
    client.write_all(&[b'!'; 3000]).unwrap();
    house.take();
    let mut text = String::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "precious");
    house.leave();
}

#[test]
fn a_pipelined_request_waits_for_the_response_before_it() {
    let house = House::new(settings());
    let (mut client, connection) = house.connect();
    let rest = Rest { before: b"response".to_vec(), ..Rest::default() };
    house.deposit(connection, 1, GET, Content::Response { rest, then: Then::KeepAlive });
    assert_eq!(house.take().bytes, GET);
    assert_eq!(read(&mut client, 8), b"response");
    house.leave();
}

#[test]
fn a_client_that_takes_nothing_is_given_up() {
    let house = House::new(Settings { write_timeout: 100, ..settings() });
    let (mut client, connection) = house.connect();
    let rest = Rest { before: bytes(LARGE), ..Rest::default() };
    house.deposit(connection, 1, b"", Content::Response { rest, then: Then::KeepAlive });
    house.wait_for(Count::ClosedByDeadline, 1);
    house.wait_for(Count::Writing, 0);
    let mut text = Vec::new();
    let _ = client.read_to_end(&mut text);
    assert!(text.len() < LARGE && bytes(LARGE).starts_with(&text));
    house.leave();
}

#[test]
fn a_connection_that_is_to_be_closed_ends_in_order() {
    let house = House::new(settings());
    let (mut client, connection) = house.connect();
    client.write_all(&[b'x'; 1000]).unwrap();
    house.deposit(connection, 1, b"", Content::Close);
    assert_eq!(read_to_end(&mut client), "");
    // Nobody resets it for a while, whatever comes; then it is closed whether the client has left or not.
    client.write_all(b"more").unwrap();
    house.wait_for(Count::Closing, 1);
    house.wait_for(Count::Closing, 0);
    assert_eq!(house.counts.get(Count::ClosedByDeadline), 0);
    house.leave();
}
