//! A connection that waits: what comes of a client's bytes is what they say, however they come and whatever happens
//! between them.
//!
//! The input is all that a client sends. What happens besides is drawn from it, as are the cuts.

use pitchfork_core::http::{BodyDecoder, Framing, Head, Limits, Progress};
use pitchfork_core::reactor::machine::{Action, Circumstances, Connection, Event, Origin, Phase};
use pitchfork_core::reactor::{Buffered, Chunk, Settings};

use crate::{Random, pieces, tight_limits};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// What came of the input.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// The head of each request, and its body if there is one.
    requests: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The status of the refusal, if it ended in one.
    refused: Option<u16>,
    /// Whether a request came whose body is the worker's to ask for, so that nobody knows what the rest is.
    open: bool,
}

/// The target.
pub fn run(input: &[u8]) {
    for limits in [Limits::default(), tight_limits()] {
        let settings = Settings {
            limits,
            header_timeout: 1_000,
            keepalive_timeout: 2_000,
            body_timeout: 1_500,
            min_rate: 0,
            write_timeout: 500,
            body_memory: 10,
            rewindable: true,
        };
        let expected = read(input, &limits);
        for cuts in pieces::cuts(input) {
            let found = Client { input, settings: &settings, now: 0, random: Random::of(input) }.play(&cuts);
            if expected.open {
                // Whether the body of the last one has begun when its head is seen to be whole is a matter of the cuts.
                assert!(found.requests.starts_with(&expected.requests));
            } else {
                assert_eq!(found, expected, "what comes of it depends on what happens besides");
            }
        }
    }
}

/// The same, by somebody who has all of it at once.
fn read(mut input: &[u8], limits: &Limits) -> Outcome {
    let mut outcome = Outcome::default();
    while !input.is_empty() {
        let mut head = Head::default();
        match head.parse(input, limits) {
            Ok(Progress::Complete) => {}
            Ok(Progress::Partial) => break,
            Err(reject) => {
                outcome.refused = Some(reject.status());
                break;
            }
        }
        let (text, rest) = input.split_at(head.len());
        let framing = head.framing();
        if head.expect_continue() {
            outcome.open = true;
            break;
        }
        if matches!(framing, Framing::None | Framing::Length(0)) {
            outcome.requests.push((text.to_vec(), None));
            input = rest;
            continue;
        }
        let mut decoder = BodyDecoder::new(framing, limits);
        let mut body = Vec::new();
        match decoder.decode(rest, &mut body) {
            Ok(taken) if decoder.is_done() => {
                outcome.requests.push((text.to_vec(), Some(body)));
                input = &rest[taken..];
            }
            Ok(_) => break,
            Err(reject) => {
                outcome.refused = Some(reject.status());
                break;
            }
        }
    }
    outcome
}

struct Client<'c> {
    input: &'c [u8],
    settings: &'c Settings,
    now: u64,
    random: Random,
}

impl Client<'_> {
    fn step(&self, connection: &mut Connection, event: Event<'_>) -> Action {
        let at = Circumstances { settings: self.settings, now: self.now, date: DATE, draining: false };
        let action = connection.step(event, &at);
        assert_eq!(action, connection.action());
        let timeless = matches!(connection.phase(), Phase::Ready) || action == Action::Close;
        assert_eq!(connection.deadline(self.settings).is_none(), timeless, "it may wait for ever");
        action
    }

    /// Something that shall make no difference.
    fn disturb(&mut self, connection: &mut Connection) {
        let before = (connection.action(), connection.phase(), connection.deadline(self.settings));
        let event = match self.random.below(5) {
            0 => Event::Due,
            1 => Event::Stored,
            2 => Event::Written(self.random.next_u64()),
            3 => Event::HalfClosed,
            _ if before.1 == Phase::Idle => Event::Due,
            _ => Event::Displaced,
        };
        if before.0 == Action::Read {
            self.step(connection, event);
            assert_eq!((connection.action(), connection.phase(), connection.deadline(self.settings)), before);
        }
    }

    /// Sends the input in pieces, and sends requests back as workers do, with what came behind them.
    fn play(mut self, cuts: &[usize]) -> Outcome {
        let mut outcome = Outcome::default();
        let mut file = Vec::new();
        let mut from = 0;
        let mut cuts = cuts.iter();
        let mut connection = Connection::waiting(Origin { peer: None, served: 0, since: 0 }, Vec::new());
        let mut action = self.step(&mut connection, Event::Arrived);
        loop {
            self.disturb(&mut connection);
            action = match action {
                Action::Read => {
                    let Some(&end) = cuts.next() else { break };
                    let piece = &self.input[from..end];
                    from = end;
                    // All of it comes within the time of the first head.
                    self.now = (self.now + self.random.next_u64() % 3).min(900);
                    self.step(&mut connection, Event::Received(piece))
                }
                Action::Store => {
                    let (offset, bytes) = connection.unstored();
                    assert_eq!(offset, file.len() as u64, "a hole in the file");
                    file.extend_from_slice(bytes);
                    self.step(&mut connection, Event::Stored)
                }
                Action::HandOver => {
                    let Some(request) = connection.into_request() else { panic!("ready, but no request") };
                    let mut head = Head::default();
                    assert_eq!(head.parse(&request.bytes, &self.settings.limits), Ok(Progress::Complete));
                    if head.expect_continue() {
                        outcome.open = true;
                        return outcome;
                    }
                    let body = request.body.map(|body| match body {
                        Buffered::Memory(body) => body,
                        Buffered::File(length) => {
                            assert_eq!(length, file.len() as u64);
                            std::mem::take(&mut file)
                        }
                    });
                    let (text, rest) = request.bytes.split_at(head.len());
                    outcome.requests.push((text.to_vec(), body));
                    connection = Connection::waiting(request.origin, rest.to_vec());
                    self.step(&mut connection, Event::Arrived)
                }
                Action::Write => {
                    outcome.refused = Some(self.take_refusal(connection));
                    return outcome;
                }
                Action::HalfClose | Action::Close => panic!("given up in time: {connection:?}"),
            };
        }
        self.leave(connection);
        outcome
    }

    /// Reads the refusal byte by byte, to the end of the connection.
    fn take_refusal(&mut self, mut connection: Connection) -> u16 {
        let mut text = Vec::new();
        while let Some(Chunk::Bytes(bytes)) = connection.chunk() {
            text.push(bytes[0]);
            self.step(&mut connection, Event::Written(1));
        }
        assert_eq!(connection.action(), Action::HalfClose);
        assert_eq!(self.step(&mut connection, Event::HalfClosed), Action::Read);
        self.leave(connection);
        let status = text.strip_prefix(b"HTTP/1.1 ").and_then(|rest| str::from_utf8(rest.get(..3)?).ok()?.parse().ok());
        status.unwrap_or_else(|| panic!("no refusal: {}", text.escape_ascii()))
    }

    /// The client leaves, or stays and is given up: in a few steps in either case.
    fn leave(&mut self, mut connection: Connection) {
        if self.random.below(2) == 0 {
            assert_eq!(self.step(&mut connection, Event::Ended), Action::Close);
            return;
        }
        for _ in 0..4 {
            let Some(deadline) = connection.deadline(self.settings) else { break };
            self.now = deadline;
            self.step(&mut connection, Event::Due);
            if connection.action() == Action::HalfClose {
                self.step(&mut connection, Event::HalfClosed);
            }
        }
        assert_eq!(connection.action(), Action::Close);
        assert_eq!(self.step(&mut connection, Event::Received(b"GET / HTTP/1.1\r\n")), Action::Close);
    }
}
