//! A request's body: the same bytes and the same end however it is cut, and nothing taken from what follows it.
//!
//! The input's first line is the framing (`chunked`, `none` or a length) and perhaps the largest body allowed; the
//! rest is what the connection brings.

use pitchfork_core::http::{BodyDecoder, Framing, Limits, Reject};

use crate::reference::{Outcome, body};
use crate::{pieces, tight_limits};

/// What came of decoding.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    data: Vec<u8>,
    verdict: Result<Ended, Reject>,
}

#[derive(Debug, PartialEq, Eq)]
struct Ended {
    taken: usize,
    done: bool,
    remaining: Option<u64>,
}

/// The target.
pub fn run(input: &[u8]) {
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let line = String::from_utf8_lossy(&input[..end]);
    let (kind, max) = line.split_once(' ').unwrap_or((&line, ""));
    let max_body_size = max.parse().ok();
    let framing = match kind {
        "none" => Framing::None,
        _ => kind.parse().map_or(Framing::Chunked, Framing::Length),
    };
    let rest = input.get(end + 1..).unwrap_or_default();
    for limits in [Limits { max_body_size, ..Limits::default() }, tight_limits()] {
        check(framing, rest, &limits);
    }
}

fn check(framing: Framing, input: &[u8], limits: &Limits) {
    let whole = decode(framing, input, &[input.len()], limits);
    for cuts in pieces::cuts(input) {
        assert_eq!(decode(framing, input, &cuts, limits), whole, "what is read depends on the cuts");
    }
    let Ok(ended) = &whole.verdict else { return };
    assert!(whole.data.len() <= ended.taken, "more than came in");
    match framing {
        Framing::None => assert_eq!((ended.taken, ended.done), (0, true)),
        Framing::Length(length) => {
            let expected = usize::try_from(length).unwrap_or(usize::MAX).min(input.len());
            assert_eq!(ended.taken, expected);
            assert_eq!(whole.data, &input[..expected]);
            assert_eq!(ended.done, expected as u64 == length);
            assert_eq!(ended.remaining, Some(length - expected as u64));
        }
        Framing::Chunked => assert_eq!(ended.remaining, None),
    }
    if framing == Framing::Chunked {
        let expected = if ended.done {
            Outcome::Done(body::Body { data: whole.data, length: ended.taken })
        } else {
            Outcome::Incomplete
        };
        let found = body::body(&body::Framing::Chunked, input, &limits.into());
        assert_eq!(found, expected, "the end lies elsewhere");
    }
    if !ended.done {
        assert_eq!(ended.taken, input.len(), "bytes left although the body has not ended");
        return;
    }
    if let Some(last) = ended.taken.checked_sub(1) {
        let shorter = decode(framing, &input[..last], &[last], limits);
        assert!(!shorter.verdict.is_ok_and(|ended| ended.done), "its last byte was none of it");
    }
}

/// Feeds pieces as a connection would: what a piece holds beyond the body's end stays with the connection.
fn decode(framing: Framing, input: &[u8], cuts: &[usize], limits: &Limits) -> Run {
    let mut decoder = BodyDecoder::new(framing, limits);
    let mut data = Vec::new();
    let mut taken = 0;
    for &end in cuts {
        match decoder.decode(&input[taken..end], &mut data) {
            Ok(count) => taken += count,
            Err(reject) => {
                assert!(!decoder.is_done());
                let length = data.len();
                for next in [&b"0\r\n\r\n"[..], b""] {
                    assert_eq!(decoder.decode(next, &mut data), Err(reject), "the failure was forgotten");
                }
                assert_eq!(data.len(), length);
                return Run { data, verdict: Err(reject) };
            }
        }
        assert_eq!(decoder.decoded(), data.len() as u64);
        assert!(taken == end || decoder.is_done(), "bytes left although the body has not ended");
    }
    let done = decoder.is_done();
    if done {
        let length = data.len();
        assert_eq!(decoder.decode(b"GET / HTTP/1.1\r\n", &mut data), Ok(0), "the next request was touched");
        assert_eq!(data.len(), length);
    }
    Run { data, verdict: Ok(Ended { taken, done, remaining: decoder.remaining() }) }
}
