//! The chunked coding: what was encoded is decoded to the same, and nothing else does harm.
//!
//! The input is taken twice: as data to encode, and as something a client claims to be chunks.

use pitchfork_core::http::Limits;
use pitchfork_core::http::chunked::{ChunkedDecoder, LAST_CHUNK, chunk_header, write_chunk};

use crate::reference::{Outcome, body};
use crate::{Random, pieces};

/// The target.
pub fn run(input: &[u8]) {
    round_trip(input);
    arbitrary(input);
}

fn round_trip(data: &[u8]) {
    let mut random = Random::of(data);
    for cuts in pieces::cuts(data) {
        let mut wire = Vec::new();
        let mut start = 0;
        for end in cuts {
            let piece = &data[start..end];
            let written = wire.len();
            write_chunk(&mut wire, piece);
            if piece.is_empty() {
                assert_eq!(wire.len(), written, "an empty chunk is the last one");
            } else {
                assert!(wire[written..].starts_with(chunk_header(piece.len()).as_bytes()));
            }
            start = end;
        }
        wire.extend_from_slice(LAST_CHUNK);
        let length = wire.len();
        wire.extend_from_slice(b"GET / HTTP/1.1\r\n");

        let mut decoder = ChunkedDecoder::new(&Limits::default());
        let mut found = Vec::new();
        let cut = random.below(length);
        assert_eq!(decoder.decode(&wire[..cut], &mut found), Ok(cut));
        assert_eq!(decoder.decode(&wire[cut..], &mut found), Ok(length - cut));
        assert!(decoder.is_done());
        assert_eq!(found, data, "decoding is not the reverse of encoding");

        // Both could be wrong in the same way.
        let expected = body::Body { data: found, length };
        let reference = body::body(&body::Framing::Chunked, &wire, &(&Limits::default()).into());
        assert_eq!(reference, Outcome::Done(expected));
    }
    let size = random.below(usize::MAX) >> random.below(64);
    assert_eq!(chunk_header(size).as_bytes(), format!("{size:x}\r\n").as_bytes());
}

fn arbitrary(input: &[u8]) {
    let mut decoder = ChunkedDecoder::new(&Limits::default());
    let mut found = Vec::new();
    let result = decoder.decode(input, &mut found);
    assert!(found.len() <= input.len(), "more came out than went in");
    assert_eq!(decoder.decoded(), found.len() as u64);
    let Ok(taken) = result else {
        assert!(!decoder.is_done());
        return;
    };
    assert!(found.len() <= taken && taken <= input.len());
    assert!(decoder.is_done() || taken == input.len());
    let expected = if decoder.is_done() {
        // At least a last chunk, and what ends the trailers.
        assert!(taken >= LAST_CHUNK.len() && input[..taken].ends_with(b"\r\n"));
        Outcome::Done(body::Body { data: found, length: taken })
    } else {
        Outcome::Incomplete
    };
    let reference = body::body(&body::Framing::Chunked, input, &(&Limits::default()).into());
    assert_eq!(reference, expected, "the end lies elsewhere");
}
