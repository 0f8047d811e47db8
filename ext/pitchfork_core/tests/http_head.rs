//! What must hold for the parser of request heads whatever arrives, and however it is cut into packets.

use pitchfork_core::http::{EnvScratch, Framing, Head, Limits, Progress, Reject};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Everything a head can be asked.
fn describe(head: &Head, buf: &[u8]) -> String {
    let mut env = Vec::new();
    head.for_each_env_field(buf, &mut EnvScratch::default(), |name, key, value| {
        env.push((name.to_vec(), key.to_vec(), value.to_vec()));
    });
    let fields: Vec<_> = head.fields(buf).collect();
    format!(
        "{} {:?} {} {} {} {} {:?} {:?} {fields:?} {env:?} {:?} {} {} {:?} {}",
        head.method(buf),
        head.version(),
        head.raw_target(buf),
        head.request_uri(buf),
        head.path(buf),
        head.query(buf),
        head.form(),
        head.authority(buf),
        head.content_type(buf),
        head.expect_continue(),
        head.is_head(),
        head.framing(),
        head.len(),
    )
}

fn limits() -> Limits {
    Limits {
        max_header_size: 300,
        max_fields: 6,
        max_target: 40,
        max_method: 10,
        max_body_size: Some(1000),
        ..Limits::default()
    }
}

/// The outcome when everything comes at once.
fn whole(buf: &[u8]) -> Result<Option<String>, Reject> {
    let mut head = Head::default();
    Ok(match head.parse(buf, &limits())? {
        Progress::Partial => None,
        Progress::Complete => Some(describe(&head, buf)),
    })
}

/// The outcome when it comes in pieces that end at the given places.
fn in_pieces(buf: &[u8], cuts: &[Index]) -> Result<Option<String>, Reject> {
    let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(buf.len() + 1)).collect();
    ends.push(buf.len());
    ends.sort_unstable();
    let mut head = Head::default();
    let mut progress = Progress::Partial;
    for end in ends {
        progress = head.parse(&buf[..end], &limits())?;
    }
    Ok(match progress {
        Progress::Partial => None,
        Progress::Complete => Some(describe(&head, buf)),
    })
}

/// Requests that are accepted, with something behind them.
fn valid() -> impl Strategy<Value = Vec<u8>> {
    let target = "(http://[a-z_.]{1,8}(:8[0-9])?)?/[a-z%/]{0,8}([?][a-z=&]{0,8})?(#[a-z]{0,3})?";
    let fields = vec("[A-Ca-c_-]{1,3}: ?[ -~\t\u{80}-\u{ff}]{0,12}\r\n", 0..4);
    let framing = select(vec![
        "",
        "Content-Length: 7\r\n",
        "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n",
        "Content-Type: a/b\r\nCookie: c\r\n",
    ]);
    let start = select(vec!["", "\r\n"]);
    let method = "[A-Z]{1,8}".prop_filter("served", |method| method != "CONNECT");
    (start, method, target, fields, framing, vec(any::<u8>(), 0..9)).prop_map(
        |(start, method, target, fields, framing, rest)| {
            let fields = fields.concat();
            let text = format!("{start}{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}{framing}\r\n");
            [text.into_bytes(), rest].concat()
        },
    )
}

/// Requests with a few bytes replaced by ones that tend to matter.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let byte = select(b"\r\n\t :,_-/*@[]?#\0\x7f\xff0a".to_vec());
    (valid(), vec((any::<Index>(), byte, any::<bool>()), 1..4)).prop_map(|(mut text, damage)| {
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

/// Bytes out of the alphabet that heads are made of, in no order.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        &b"GET "[..],
        b"OPTIONS ",
        b"CONNECT ",
        b"/",
        b"* ",
        b"http://",
        b"h",
        b"[::1]",
        b":80",
        b"?",
        b"#",
        b" HTTP/1.1",
        b" HTTP/1.0",
        b"\r\n",
        b"\r\n\r\n",
        b"\r",
        b"\n",
        b"Host: ",
        b"Content-Length: ",
        b"1",
        b"Transfer-Encoding: ",
        b"chunked",
        b"Expect: ",
        b"100-continue",
        b",",
        b" ",
        b"\t",
        b"\0",
        b"\xff",
        b"_",
    ]);
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn valid_requests_are_accepted(text in valid()) {
        prop_assert!(matches!(whole(&text), Ok(Some(_))), "{:?}", whole(&text));
    }

    #[test]
    fn cuts_do_not_change_what_is_accepted(text in valid(), cuts in vec(any::<Index>(), 0..6)) {
        prop_assert_eq!(in_pieces(&text, &cuts), whole(&text));
    }

    #[test]
    fn cuts_do_not_change_what_is_refused_and_why(
        text in prop_oneof![damaged(), soup()],
        cuts in vec(any::<Index>(), 0..6),
    ) {
        prop_assert_eq!(in_pieces(&text, &cuts), whole(&text));
    }

    #[test]
    fn no_prefix_of_an_accepted_request_is_refused(text in prop_oneof![valid(), damaged(), soup()]) {
        let mut head = Head::default();
        if head.parse(&text, &limits()) == Ok(Progress::Complete) {
            for end in 0..head.len() {
                let progress = Head::default().parse(&text[..end], &limits());
                prop_assert_eq!(progress, Ok(Progress::Partial));
            }
            let progress = Head::default().parse(&text[..head.len()], &limits());
            prop_assert_eq!(progress, Ok(Progress::Complete));
        }
    }

    #[test]
    fn a_complete_head_ends_in_the_first_empty_line(text in prop_oneof![damaged(), soup()]) {
        let mut head = Head::default();
        if head.parse(&text, &limits()) == Ok(Progress::Complete) {
            // A leading empty line is not the end.
            let start = if text.starts_with(b"\r\n") { 2 } else { 0 };
            let end = text[start..].windows(4).position(|window| window == b"\r\n\r\n");
            prop_assert_eq!(Some(head.len()), end.map(|end| start + end + 4));
            // No line end of another kind is in it.
            let crlf = text[..head.len()].windows(2).filter(|pair| pair == b"\r\n").count();
            let singles = text[..head.len()].iter().filter(|byte| b"\r\n".contains(byte)).count();
            prop_assert_eq!(2 * crlf, singles);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(text in vec(any::<u8>(), 0..200), cuts in vec(any::<Index>(), 0..4)) {
        let _ = in_pieces(&text, &cuts);
    }

    #[test]
    fn another_buffer_does_not_make_it_panic(text in valid(), other in vec(any::<u8>(), 0..200)) {
        let mut head = Head::default();
        let _ = head.parse(&text, &limits());
        describe(&head, &other);
        let _ = head.parse(&other, &limits());
        let mut head = Head::default();
        let _ = head.parse(&text[..text.len() / 2], &limits());
        describe(&head, &text);
        let _ = head.parse(&other, &limits());
    }

    #[test]
    fn env_keys_are_distinct_and_come_from_their_names(text in prop_oneof![valid(), damaged()]) {
        let mut head = Head::default();
        if head.parse(&text, &limits()) == Ok(Progress::Complete) {
            let mut keys = Vec::new();
            head.for_each_env_field(&text, &mut EnvScratch::default(), |name, key, _| {
                let name = String::from_utf8(name.to_vec()).unwrap();
                let expected = format!("HTTP_{}", name.to_uppercase().replace('-', "_"));
                assert_eq!(key, expected.as_bytes());
                keys.push(key.to_vec());
            });
            let count = keys.len();
            keys.sort_unstable();
            keys.dedup();
            prop_assert_eq!(keys.len(), count);
        }
    }

    #[test]
    fn a_reused_head_is_as_good_as_a_new_one(
        first in prop_oneof![valid(), damaged()],
        second in prop_oneof![valid(), damaged()],
    ) {
        let mut head = Head::default();
        let _ = head.parse(&first, &limits());
        head.clear();
        let result = head.parse(&second, &limits());
        let mut fresh = Head::default();
        prop_assert_eq!(result, fresh.parse(&second, &limits()));
        if result == Ok(Progress::Complete) {
            prop_assert_eq!(describe(&head, &second), describe(&fresh, &second));
        }
    }

    #[test]
    fn two_framings_are_never_accepted(text in damaged()) {
        let mut head = Head::default();
        if head.parse(&text, &limits()) == Ok(Progress::Complete) {
            let count = |wanted: &str| {
                let named = |name: &[u8]| {
                    String::from_utf8_lossy(name).replace('_', "-").eq_ignore_ascii_case(wanted)
                };
                head.fields(&text).filter(|(name, _)| named(name)).count()
            };
            let expected = match head.framing() {
                Framing::None => (0, 0),
                Framing::Length(_) => (1, 0),
                Framing::Chunked => (0, 1),
            };
            prop_assert_eq!((count("content-length"), count("transfer-encoding")), expected);
        }
    }
}
