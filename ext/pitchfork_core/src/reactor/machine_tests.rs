use super::*;
use crate::http::Limits;
use crate::http::date::DATE_LENGTH;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const DATE: &[u8; DATE_LENGTH] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const FRESH: Origin = Origin { peer: None, served: 0, since: 0 };

fn settings() -> Settings {
    Settings {
        limits: Limits { max_header_size: 400, max_body_size: Some(1 << 20), ..Limits::default() },
        header_timeout: 100,
        keepalive_timeout: 1_000,
        body_timeout: 200,
        min_rate: 0,
        write_timeout: 300,
        body_memory: 16,
        rewindable: true,
    }
}

fn at(settings: &Settings, now: Millis) -> Circumstances<'_> {
    Circumstances { settings, now, date: DATE, draining: false }
}

/// A connection that has arrived, and what is to be done with it.
fn arrived(mut connection: Connection, at: &Circumstances<'_>) -> (Connection, Action) {
    let action = connection.step(Event::Arrived, at);
    (connection, action)
}

/// One to which nothing was sent yet.
fn fresh(at: &Circumstances<'_>) -> Connection {
    let (connection, action) = arrived(Connection::waiting(FRESH, Vec::new()), at);
    assert_eq!((action, connection.phase()), (Action::Read, Phase::Idle));
    connection
}

fn chunk(connection: &Connection) -> String {
    match connection.chunk() {
        Some(Chunk::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("wanted bytes, got {other:?}"),
    }
}

fn assert_answers(connection: &mut Connection, action: Action, status: u16, at: &Circumstances<'_>) {
    assert_eq!(action, Action::Write);
    let answer = chunk(connection);
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert_eq!(connection.step(Event::Written(answer.len() as u64), at), Action::HalfClose);
    assert_eq!(connection.step(Event::HalfClosed, at), Action::Read);
    assert_eq!(connection.phase(), Phase::Closing);
}

#[test]
fn an_idle_connection_holds_no_memory() {
    let settings = settings();
    assert_eq!(fresh(&at(&settings, 0)).memory(), 0);
    assert!(size_of::<Connection>() <= 120, "{}", size_of::<Connection>());
    // Also one that had something to write before.
    let response = Outgoing::new(vec![b'x'; 100], None, Vec::new(), Then::KeepAlive);
    let (mut connection, action) = arrived(Connection::writing(FRESH, Vec::new(), response), &at(&settings, 5));
    assert_eq!(action, Action::Write);
    assert_eq!(connection.step(Event::Written(100), &at(&settings, 6)), Action::Read);
    assert_eq!((connection.phase(), connection.memory(), connection.since()), (Phase::Idle, 0, 6));
}

#[test]
fn a_head_that_never_comes_ends_silently_and_one_that_stays_away_is_told() {
    let settings = settings();
    let mut connection = fresh(&at(&settings, 0));
    assert_eq!(connection.step(Event::Due, &at(&settings, 99)), Action::Read);
    assert_eq!(connection.step(Event::Due, &at(&settings, 100)), Action::HalfClose);
    let mut connection = fresh(&at(&settings, 0));
    assert_eq!(connection.step(Event::Received(b"G"), &at(&settings, 90)), Action::Read);
    assert_eq!(connection.step(Event::Received(b"E"), &at(&settings, 180)), Action::Read);
    assert_eq!(connection.step(Event::Due, &at(&settings, 189)), Action::Read);
    let late = at(&settings, 190);
    let action = connection.step(Event::Due, &late);
    assert_answers(&mut connection, action, 408, &late);
}

#[test]
fn an_idle_persistent_connection_has_more_time() {
    let settings = settings();
    let served = Origin { served: 1, since: 50, ..FRESH };
    let (mut connection, _) = arrived(Connection::waiting(served, Vec::new()), &at(&settings, 60));
    assert_eq!(connection.deadline(&settings), Some(1_050));
    assert_eq!(connection.step(Event::Due, &at(&settings, 1_050)), Action::HalfClose);
}

#[test]
fn a_whole_request_is_handed_over_with_what_follows_it() {
    let settings = settings();
    let at = at(&settings, 7);
    let input = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2";
    let (connection, action) = arrived(Connection::waiting(FRESH, input.to_vec()), &at);
    assert_eq!((action, connection.deadline(&settings)), (Action::HandOver, None));
    let request = connection.into_request().unwrap();
    assert_eq!((&request.bytes[..], request.body), (&input[..], None));
}

#[test]
fn bodies_stay_in_memory_up_to_the_limit_and_leave_it_beyond() {
    let settings = settings();
    let at = at(&settings, 0);
    let post = |length| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    let mut connection = fresh(&at);
    assert_eq!(connection.step(Event::Received(&post(16)), &at), Action::Read);
    assert_eq!(connection.step(Event::Received(b"0123456789abcdefGET"), &at), Action::HandOver);
    let request = connection.into_request().unwrap();
    assert_eq!(request.body, Some(Buffered::Memory(b"0123456789abcdef".to_vec())));
    assert_eq!(request.bytes, [&post(16)[..], b"GET"].concat());

    let mut connection = fresh(&at);
    assert_eq!(connection.step(Event::Received(&post(20)), &at), Action::Read);
    assert_eq!(connection.step(Event::Received(b"0123456789"), &at), Action::Read);
    assert_eq!(connection.step(Event::Received(b"abcdefg"), &at), Action::Store);
    assert_eq!(connection.unstored(), (0, &b"0123456789abcdefg"[..]));
    assert_eq!(connection.step(Event::Stored, &at), Action::Read);
    assert_eq!(connection.step(Event::Received(b"hijGET"), &at), Action::Store);
    assert_eq!(connection.unstored(), (17, &b"hij"[..]));
    assert_eq!(connection.step(Event::Stored, &at), Action::HandOver);
    let request = connection.into_request().unwrap();
    assert_eq!(request.body, Some(Buffered::File(20)));
    assert_eq!(request.bytes, [&post(20)[..], b"GET"].concat());

    let mut connection = fresh(&at);
    assert_eq!(connection.step(Event::Received(&post(20)), &at), Action::Read);
    assert_eq!(connection.step(Event::Received(b"0123456789abcdefg"), &at), Action::Store);
    let action = connection.step(Event::NotStored, &at);
    assert_answers(&mut connection, action, 500, &at);
}

#[test]
fn bodies_that_are_not_waited_for_are_left_to_the_worker() {
    let expecting = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab";
    let empty = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    for (input, rewindable) in [(expecting, true), (chunked, false), (empty, true), (empty, false)] {
        let settings = Settings { rewindable, ..settings() };
        let (connection, action) = arrived(Connection::waiting(FRESH, input.as_bytes().to_vec()), &at(&settings, 0));
        assert_eq!(action, Action::HandOver, "{input}");
        let request = connection.into_request().unwrap();
        assert_eq!((request.bytes, request.body), (input.as_bytes().to_vec(), None));
    }
    // A client that expects an answer and sends its body all the same does not wait for it.
    let settings = settings();
    let (mut connection, action) =
        arrived(Connection::waiting(FRESH, [expecting.as_bytes(), b"a"].concat()), &at(&settings, 0));
    assert_eq!(action, Action::Read);
    assert_eq!(connection.step(Event::Received(b"bc"), &at(&settings, 1)), Action::HandOver);
    assert_eq!(connection.into_request().unwrap().body, Some(Buffered::Memory(b"abc".to_vec())));
}

#[test]
fn a_body_is_late_when_its_client_is_silent_or_slow() {
    let input = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n";
    let silent = settings();
    let (mut connection, _) = arrived(Connection::waiting(FRESH, input.to_vec()), &at(&silent, 1_000));
    assert_eq!(connection.deadline(&silent), Some(1_200));
    connection.step(Event::Received(b"x"), &at(&silent, 1_150));
    assert_eq!(connection.deadline(&silent), Some(1_350));
    let late = at(&silent, 1_350);
    let action = connection.step(Event::Due, &late);
    assert_answers(&mut connection, action, 408, &late);

    let slow = Settings { min_rate: 100, body_memory: 9000, ..silent };
    let (mut connection, _) = arrived(Connection::waiting(FRESH, input.to_vec()), &at(&slow, 1_000));
    for now in (1_010..1_210).step_by(10) {
        assert_eq!(connection.step(Event::Due, &at(&slow, now)), Action::Read);
        connection.step(Event::Received(b"x"), &at(&slow, now));
    }
    // 20 bytes have earned 200 ms.
    connection.step(Event::Received(b""), &at(&slow, 1_390));
    assert_eq!(connection.deadline(&slow), Some(1_400));
}

#[test]
fn malformed_requests_are_answered() {
    let settings = settings();
    let at = at(&settings, 0);
    for (input, status) in [
        (&b"GET\r\n"[..], 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n", 505),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx", 400),
        (&[b'x'; 401], 501),
    ] {
        let (mut connection, action) = arrived(Connection::waiting(FRESH, input.to_vec()), &at);
        assert_eq!(connection.refusal().map(Refusal::status), Some(status));
        assert_answers(&mut connection, action, status, &at);
    }
}

#[test]
fn the_end_of_a_client_closes_what_waits_for_it_and_nothing_else() {
    let settings = settings();
    let at = at(&settings, 0);
    let body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx";
    for input in [&b""[..], b"GET", body] {
        let (mut connection, _) = arrived(Connection::waiting(FRESH, input.to_vec()), &at);
        assert_eq!(connection.step(Event::Ended, &at), Action::Close);
    }
    let whole = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let (mut connection, _) = arrived(Connection::waiting(FRESH, whole), &at);
    assert_eq!(connection.step(Event::Ended, &at), Action::HandOver);
    let response = Outgoing::new(b"x".to_vec(), None, Vec::new(), Then::KeepAlive);
    let (mut connection, _) = arrived(Connection::writing(FRESH, Vec::new(), response), &at);
    assert_eq!(connection.step(Event::Ended, &at), Action::Write);
    assert_eq!(connection.step(Event::Broken, &at), Action::Close);
}

#[test]
fn a_response_is_written_piece_by_piece_and_its_client_must_take_something() {
    let settings = settings();
    let response = Outgoing::new(b"head".to_vec(), Some((10, 6)), b"end".to_vec(), Then::Close);
    let (mut connection, action) = arrived(Connection::writing(FRESH, b"GET".to_vec(), response), &at(&settings, 1));
    assert_eq!((action, connection.deadline(&settings)), (Action::Write, Some(301)));
    assert_eq!(chunk(&connection), "head");
    connection.step(Event::Written(3), &at(&settings, 50));
    assert_eq!((chunk(&connection).as_str(), connection.deadline(&settings)), ("d", Some(350)));
    connection.step(Event::Written(1), &at(&settings, 50));
    assert_eq!(connection.chunk(), Some(Chunk::File { offset: 10, length: 6 }));
    connection.step(Event::Written(4), &at(&settings, 50));
    assert_eq!(connection.chunk(), Some(Chunk::File { offset: 14, length: 2 }));
    connection.step(Event::Written(2), &at(&settings, 50));
    assert_eq!(chunk(&connection), "end");
    assert_eq!(connection.step(Event::Due, &at(&settings, 349)), Action::Write);
    assert_eq!(connection.step(Event::Due, &at(&settings, 350)), Action::Close);
}

#[test]
fn a_pipelined_request_follows_the_response_before_it() {
    let settings = settings();
    let next = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let response = || Outgoing::new(b"x".to_vec(), None, Vec::new(), Then::KeepAlive);
    let (mut connection, _) = arrived(Connection::writing(FRESH, next.clone(), response()), &at(&settings, 0));
    assert_eq!(connection.step(Event::Written(1), &at(&settings, 9)), Action::HandOver);
    let request = connection.into_request().unwrap();
    assert_eq!((request.bytes, request.origin.since), (next, 9));
    // One that is cut has its time from now on.
    let (mut connection, _) = arrived(Connection::writing(FRESH, b"GE".to_vec(), response()), &at(&settings, 0));
    assert_eq!(connection.step(Event::Written(1), &at(&settings, 9)), Action::Read);
    assert_eq!((connection.phase(), connection.deadline(&settings)), (Phase::Reading, Some(109)));
}

#[test]
fn the_last_moments_are_bounded_in_time_and_bytes() {
    let settings = settings();
    let (mut connection, action) = arrived(Connection::ending(FRESH), &at(&settings, 7));
    assert_eq!(action, Action::HalfClose);
    assert_eq!(connection.step(Event::HalfClosed, &at(&settings, 7)), Action::Read);
    assert_eq!(connection.deadline(&settings), Some(7 + LINGER));
    let flood = vec![0; 100_000];
    assert_eq!(connection.step(Event::Received(&flood), &at(&settings, 8)), Action::Read);
    assert_eq!(connection.step(Event::Received(&flood), &at(&settings, 8)), Action::Read);
    assert_eq!(connection.step(Event::Received(&flood), &at(&settings, 8)), Action::Close);
    let (mut connection, _) = arrived(Connection::ending(FRESH), &at(&settings, 7));
    assert_eq!(connection.step(Event::Due, &at(&settings, 7 + LINGER)), Action::Close);
}

#[test]
fn a_drain_ends_what_is_idle_and_nothing_else() {
    let settings = settings();
    let draining = Circumstances { draining: true, ..at(&settings, 3) };
    let mut connection = fresh(&at(&settings, 0));
    assert_eq!(connection.step(Event::Drain, &draining), Action::HalfClose);
    let (_, action) = arrived(Connection::waiting(FRESH, Vec::new()), &draining);
    assert_eq!(action, Action::HalfClose);
    let (mut connection, action) = arrived(Connection::waiting(FRESH, b"GET".to_vec()), &draining);
    assert_eq!((action, connection.step(Event::Drain, &draining)), (Action::Read, Action::Read));
    let response = Outgoing::new(b"x".to_vec(), None, Vec::new(), Then::KeepAlive);
    let (mut connection, _) = arrived(Connection::writing(FRESH, Vec::new(), response), &draining);
    assert_eq!(connection.step(Event::Drain, &draining), Action::Write);
    assert_eq!(connection.step(Event::Written(1), &draining), Action::HalfClose);
}

/// What came of everything that a client has sent: requests with their bodies, and the answer if it was refused.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    requests: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    answer: Option<String>,
    phase: Option<Phase>,
}

/// Plays the rest of the world: a client whose bytes come in these pieces, a file, and workers that send connections back.
fn play(pieces: &[&[u8]], settings: &Settings) -> Outcome {
    let at = at(settings, 0);
    let mut outcome = Outcome::default();
    let mut file = Vec::new();
    let (mut connection, mut action) = arrived(Connection::waiting(FRESH, Vec::new()), &at);
    let mut pieces = pieces.iter();
    loop {
        action = match action {
            Action::Store => {
                let (offset, bytes) = connection.unstored();
                assert_eq!(offset, file.len() as u64);
                file.extend_from_slice(bytes);
                connection.step(Event::Stored, &at)
            }
            Action::HandOver => {
                let request = connection.into_request().unwrap();
                let body = request.body.map(|body| match body {
                    Buffered::Memory(body) => body,
                    Buffered::File(length) => {
                        assert_eq!(length, file.len() as u64);
                        assert!(length > settings.body_memory);
                        std::mem::take(&mut file)
                    }
                });
                let end = request.bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
                let (head, rest) = request.bytes.split_at(end);
                outcome.requests.push((head.to_vec(), body));
                let (next, action) = arrived(Connection::waiting(request.origin, rest.to_vec()), &at);
                connection = next;
                action
            }
            Action::Write => {
                outcome.answer = Some(chunk(&connection));
                return outcome;
            }
            Action::Read => {
                let Some(piece) = pieces.next() else {
                    outcome.phase = Some(connection.phase());
                    assert_eq!(connection.step(Event::Ended, &at), Action::Close);
                    return outcome;
                };
                connection.step(Event::Received(piece), &at)
            }
            other => panic!("{other:?}"),
        };
    }
}

fn inputs() -> impl Strategy<Value = Vec<u8>> {
    let whole = select(vec![
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n0123456789012345678901234567890123456789",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n14\r\n01234567890123456789\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\na: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n01234567890123456789012345678901x",
        b"GET / HTTP/1.1\r\nHost: a\r\nbad line\r\n\r\n",
        b"HEAD / HTTP/1.0\r\n\r\n",
        b"GET / HTT",
    ]);
    vec(whole, 0..6).prop_map(|requests| requests.concat())
}

proptest! {
    #[test]
    fn what_comes_of_the_bytes_does_not_depend_on_the_packets(input in inputs(), cuts in vec(any::<Index>(), 0..12)) {
        let settings = settings();
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        ends.extend([0, input.len()]);
        ends.sort_unstable();
        let pieces: Vec<_> = ends.windows(2).map(|ends| &input[ends[0]..ends[1]]).collect();
        let bytes: Vec<_> = input.chunks(1).collect();
        let expected = play(&[&input], &settings);
        prop_assert_eq!(&play(&pieces, &settings), &expected);
        prop_assert_eq!(&play(&bytes, &settings), &expected);
    }
}
