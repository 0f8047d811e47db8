//! The HTTP layer against a second reading of the same bytes: same verdict, same request, same body.

use std::collections::BTreeMap;

use pitchfork_core::http::{BodyDecoder, Framing, Head, Limits, Progress, Version};

use crate::reference::{self, Outcome, Statuses, body};
use crate::tight_limits;

/// What completes every head that can still become a valid one, together with its own ends.
const HEADS: [&[u8]; 2] = [b"GET / HTTP/1.0\r\n\r\n", b"1\r\nHost: a\r\n\r\n"];
const HEAD_ENDS: [&[u8]; 5] = [b":\r\n\r\n", b"\n\r\n\r\n", b"a\r\n\r\n", b"0\r\n\r\n", b"a:\r\n\r\n"];
/// The same for chunks.
const BODIES: [&[u8]; 3] = [b"1\r\na\r\n0\r\na: b\r\n\r\n", b"\r\n0\r\n\r\n", b";\r\n0\r\n\r\n"];

/// The target.
pub fn run(input: &[u8]) {
    for limits in [Limits::default(), tight_limits()] {
        check(input, &limits);
    }
}

fn check(input: &[u8], limits: &Limits) {
    let mut head = Head::default();
    let verdict = head.parse(input, limits);
    let theirs = match verdict {
        Err(reject) => Outcome::Refused([reject.status()].into()),
        Ok(Progress::Partial) => Outcome::Incomplete,
        Ok(Progress::Complete) => Outcome::Done(translate(&head, input)),
    };
    let read = |text: &[u8]| reference::head(text, &limits.into());
    let endings = HEADS.iter().flat_map(|text| (0..text.len()).map(|at| &text[at..])).chain(HEAD_ENDS);
    let Some(understood) = agree("head", input, &theirs, read, endings) else { return };

    let rest = &input[understood.length..];
    let mut decoder = BodyDecoder::new(head.framing(), limits);
    let mut data = Vec::new();
    let theirs = match decoder.decode(rest, &mut data) {
        Err(reject) => Outcome::Refused([reject.status()].into()),
        Ok(_) if !decoder.is_done() => Outcome::Incomplete,
        Ok(length) => Outcome::Done(body::Body { data, length }),
    };
    let read = |text: &[u8]| body::body(&understood.framing, text, &limits.into());
    let endings = BODIES.iter().flat_map(|text| (0..text.len()).map(|at| &text[at..]));
    agree("body", rest, &theirs, read, endings);
}

/// Compares the verdicts; returns what both understood.
fn agree<'a, T: std::fmt::Debug + PartialEq>(
    what: &str,
    input: &[u8],
    theirs: &Outcome<T>,
    read: impl Fn(&[u8]) -> Outcome<T>,
    endings: impl Iterator<Item = &'a [u8]>,
) -> Option<T> {
    let ours = read(input);
    match (theirs, ours) {
        (Outcome::Incomplete, Outcome::Incomplete) => None,
        (Outcome::Refused(status), Outcome::Refused(allowed)) => {
            assert!(status.is_subset(&allowed), "{what} refused with {status:?}, not with one of {allowed:?}");
            None
        }
        // Refused before its end came: then no end may make it good, and one must make it bad in this way.
        (Outcome::Refused(status), Outcome::Incomplete) => {
            let mut allowed = Statuses::new();
            for ending in endings {
                match read(&[input, ending].concat()) {
                    Outcome::Refused(statuses) => allowed.extend(statuses),
                    Outcome::Incomplete => {}
                    Outcome::Done(_) => {
                        panic!("{what} refused with {status:?} early, but {:?} completes it", ending.escape_ascii())
                    }
                }
            }
            assert!(status.is_subset(&allowed), "{what} refused with {status:?} early, not with one of {allowed:?}");
            None
        }
        (Outcome::Done(theirs), Outcome::Done(ours)) => {
            assert_eq!(*theirs, ours, "{what} understood differently");
            Some(ours)
        }
        (theirs, ours) => panic!("{what}: the layer says {theirs:?}, the reference says {ours:?}"),
    }
}

fn translate(head: &Head, input: &[u8]) -> reference::Head {
    let authority = head.authority(input);
    let mut env: BTreeMap<String, Vec<u8>> = crate::head::env(head, input)
        .into_iter()
        .map(|(key, value)| (String::from_utf8_lossy(&key).into_owned(), value))
        .collect();
    if let Some(value) = head.content_type(input) {
        env.insert("CONTENT_TYPE".to_owned(), value.into_owned());
    }
    reference::Head {
        length: head.len(),
        method: head.method(input).to_owned(),
        path: head.path(input).to_owned(),
        query: head.query(input).to_owned(),
        minor: match head.version() {
            Version::Http10 => 0,
            Version::Http11 => 1,
        },
        env,
        server_name: authority.name.to_owned(),
        server_port: authority.port.map(str::to_owned),
        framing: match head.framing() {
            Framing::None => body::Framing::None,
            Framing::Length(length) => body::Framing::Length(length),
            Framing::Chunked => body::Framing::Chunked,
        },
        expects_continue: head.expect_continue(),
    }
}
