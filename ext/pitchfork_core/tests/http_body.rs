//! What must hold for the decoder of request bodies whatever arrives, and however it is cut into packets.

use pitchfork_core::http::chunked::{CHUNK_END, LAST_CHUNK, chunk_header, write_chunk};
use pitchfork_core::http::{BodyDecoder, Framing, Limits, Reject};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn limits() -> Limits {
    Limits {
        max_header_size: 40,
        max_fields: 3,
        max_chunk_extensions: 30,
        max_body_size: Some(300),
        ..Limits::default()
    }
}

/// The body, how many bytes were taken, and whether that was all of it.
type Outcome = (Vec<u8>, Result<(usize, bool), Reject>);

/// Feeds `input` in pieces that end at the given places.
fn decode(framing: Framing, input: &[u8], cuts: &[Index]) -> Outcome {
    let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
    ends.push(input.len());
    ends.sort_unstable();
    let mut decoder = BodyDecoder::new(framing, &limits());
    let mut out = Vec::new();
    let mut at = 0;
    for end in ends {
        if at > end {
            continue;
        }
        match decoder.decode(&input[at..end], &mut out) {
            Ok(taken) => {
                at += taken;
                assert_eq!(decoder.decoded(), out.len() as u64);
                // Bytes are left only behind the end.
                assert!(at == end || decoder.is_done());
            }
            Err(reject) => return (out, Err(reject)),
        }
        if decoder.is_done() {
            break;
        }
    }
    (out, Ok((at, decoder.is_done())))
}

/// A body as a client may send it, and what is in it.
fn message() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let extension = select(vec!["", "", "", ";a", ";a=b", ";"]);
    let chunk = (vec(any::<u8>(), 1..20), extension, 0..3_usize, any::<bool>());
    let trailers = select(vec!["", "", "A: b\r\n", "A:\r\nB: \t\r\n"]);
    (vec(chunk, 0..6), trailers).prop_map(|(chunks, trailers)| {
        let (mut coded, mut plain) = (Vec::new(), Vec::new());
        for (data, extension, zeros, upper) in chunks {
            let mut size = format!("{}{:x}", "0".repeat(zeros), data.len());
            if upper {
                size.make_ascii_uppercase();
            }
            coded.extend_from_slice(format!("{size}{extension}\r\n").as_bytes());
            coded.extend_from_slice(&data);
            coded.extend_from_slice(b"\r\n");
            plain.extend_from_slice(&data);
        }
        coded.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
        (coded, plain)
    })
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let byte = select(b"\r\n\t :;0f\0\xff".to_vec());
    (message(), vec((any::<Index>(), byte, any::<bool>()), 1..4)).prop_map(|((mut text, _), damage)| {
        for (place, byte, insert) in damage {
            let at = place.index(text.len());
            if insert {
                text.insert(at, byte);
            } else {
                text[at] = byte;
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn what_was_encoded_is_decoded(
        parts in vec(vec(any::<u8>(), 0..40), 0..6),
        cuts in vec(any::<Index>(), 0..6),
        rest in vec(any::<u8>(), 0..9),
    ) {
        let mut coded = Vec::new();
        for part in &parts {
            write_chunk(&mut coded, part);
        }
        coded.extend_from_slice(LAST_CHUNK);
        let end = coded.len();
        coded.extend_from_slice(&rest);
        let outcome = decode(Framing::Chunked, &coded, &cuts);
        prop_assert_eq!(outcome, (parts.concat(), Ok((end, true))));
    }

    #[test]
    fn both_encoders_agree(data in vec(any::<u8>(), 1..5000)) {
        let mut written = Vec::new();
        write_chunk(&mut written, &data);
        let gathered = [chunk_header(data.len()).as_bytes(), &data, CHUNK_END].concat();
        prop_assert_eq!(written, gathered);
    }

    #[test]
    fn cuts_do_not_change_a_chunked_body(
        (coded, plain) in message(),
        cuts in vec(any::<Index>(), 0..6),
        rest in vec(any::<u8>(), 0..9),
    ) {
        let text = [&coded[..], &rest].concat();
        prop_assert_eq!(decode(Framing::Chunked, &text, &cuts), (plain, Ok((coded.len(), true))));
    }

    #[test]
    fn cuts_do_not_change_what_is_refused_and_why(
        text in damaged(),
        cuts in vec(any::<Index>(), 0..6),
    ) {
        let whole = decode(Framing::Chunked, &text, &[]);
        prop_assert_eq!(decode(Framing::Chunked, &text, &cuts), whole);
    }

    #[test]
    fn no_bytes_make_it_panic(text in vec(any::<u8>(), 0..100), cuts in vec(any::<Index>(), 0..4)) {
        let _ = decode(Framing::Chunked, &text, &cuts);
    }

    #[test]
    fn a_body_with_a_length_has_that_length(
        length in 0..40_usize,
        text in vec(any::<u8>(), 0..60),
        cuts in vec(any::<Index>(), 0..6),
    ) {
        let end = length.min(text.len());
        let outcome = decode(Framing::Length(length as u64), &text, &cuts);
        prop_assert_eq!(outcome, (text[..end].to_vec(), Ok((end, end == length))));
    }
}
