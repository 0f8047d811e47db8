use super::*;
use crate::reactor::Then;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

fn parcel(content: Content, bytes: &[u8]) -> (Parcel, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let peer = Some([127, 0, 0, 1].into());
    (Parcel { socket: ours.into(), peer, served: 3, since: 42, bytes: bytes.to_vec(), content }, theirs)
}

fn file(text: &[u8]) -> OwnedFd {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text).unwrap();
    file.into()
}

fn read(file: OwnedFd, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(length).unwrap()];
    File::from(file).read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

/// Sends a parcel and takes it again, and sees that its socket is the one whose other end is here.
fn transfer(content: Content, bytes: &[u8]) -> Content {
    let (sending, receiving) = Queue::pair().unwrap();
    assert!(receiving.receive().unwrap().is_none());
    let (sent, mut client) = parcel(content, bytes);
    sending.send(&sent).unwrap();
    drop(sent);
    let received = receiving.receive().unwrap().unwrap();
    assert_eq!((received.peer, received.served, received.since), (Some([127, 0, 0, 1].into()), 3, 42));
    assert_eq!(received.bytes, bytes);
    File::from(received.socket).write_all(b"hello").unwrap();
    let mut heard = String::new();
    client.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "hello");
    received.content
}

#[test]
fn waiting_and_closing_connections_change_hands() {
    assert!(matches!(transfer(Content::Waiting, b""), Content::Waiting));
    assert!(matches!(transfer(Content::Waiting, b"GET / HT"), Content::Waiting));
    assert!(matches!(transfer(Content::Close, b""), Content::Close));
}

#[test]
fn requests_change_hands_with_their_bodies() {
    let head = vec![b'h'; 70_000];
    for bytes in [&b"GET"[..], &head] {
        assert!(matches!(transfer(Content::Request { body: None }, bytes), Content::Request { body: None }));
        for body in [vec![], vec![b'b'; 100], vec![b'c'; 100_000]] {
            let stored = Some(StoredBody::Memory(body.clone()));
            match transfer(Content::Request { body: stored }, bytes) {
                Content::Request { body: Some(StoredBody::Memory(found)) } => assert_eq!(found, body),
                other => panic!("{other:?}"),
            }
        }
        let stored = Some(StoredBody::File { file: file(b"a body"), length: 6 });
        match transfer(Content::Request { body: stored }, bytes) {
            Content::Request { body: Some(StoredBody::File { file, length: 6 }) } => {
                assert_eq!(read(file, 0, 6), b"a body");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn responses_change_hands_with_their_file() {
    for size in [3, 30_000] {
        for then in [Then::KeepAlive, Then::Close] {
            let (before, after) = (vec![b'1'; size], vec![b'2'; size]);
            let part = FilePart { file: file(b"0123456789"), offset: 2, length: 5 };
            let rest = Rest { before: before.clone(), file: Some(part), after: after.clone() };
            let Content::Response { rest, then: found } = transfer(Content::Response { rest, then }, b"GET") else {
                panic!("another content");
            };
            assert_eq!((found, rest.before, rest.after), (then, before, after));
            let FilePart { file, offset, length } = rest.file.unwrap();
            assert_eq!((offset, read(file, offset, length)), (2, b"23456".to_vec()));
        }
    }
}

#[test]
fn a_full_queue_leaves_the_parcel_with_its_sender_and_has_room_again() {
    let (sending, receiving) = Queue::pair().unwrap();
    let (parcel, _client) = parcel(Content::Waiting, &[b'x'; 1000]);
    let mut sent = 0;
    let failure = loop {
        match sending.send(&parcel) {
            Ok(()) => sent += 1,
            Err(failure) => break failure,
        }
        assert!(sent < 100_000, "this queue is never full");
    };
    assert!(matches!(failure, SendError::Full), "{failure:?}");
    assert!(sent >= 100, "{sent} do not fit what a burst needs");
    for _ in 0..sent {
        assert!(receiving.receive().unwrap().is_some());
    }
    assert!(receiving.receive().unwrap().is_none());
    sending.send(&parcel).unwrap();
}

#[test]
fn a_packet_that_is_no_parcel_is_an_error_and_the_next_one_is_read() {
    let (sending, receiving) = Queue::pair().unwrap();
    packet::send(&sending, &[b"hello"], &[]).unwrap();
    packet::send(&sending, &[&vec![0; MAX_PACKET + 1]], &[]).unwrap();
    let (parcel, _client) = parcel(Content::Waiting, b"");
    sending.send(&parcel).unwrap();
    for _ in 0..2 {
        assert!(matches!(receiving.receive(), Err(Error::Parcel(_))));
    }
    assert!(receiving.receive().unwrap().is_some());
}

#[test]
fn a_file_of_sections_that_is_too_short_is_refused() {
    let (sending, receiving) = Queue::pair().unwrap();
    let (mut parcel, _client) = parcel(Content::Waiting, b"");
    parcel.bytes = vec![0; 20_000];
    let label = Label::of(&parcel).encode();
    let short = file(&vec![0; 19_999]);
    packet::send(&sending, &[&label], &[parcel.socket.as_fd(), short.as_fd()]).unwrap();
    assert!(matches!(receiving.receive(), Err(Error::Parcel(_))));
}
