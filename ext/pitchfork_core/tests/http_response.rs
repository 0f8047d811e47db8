//! What must hold for the head of a response whatever the application returns.

use pitchfork_core::http::{
    BodyFraming, BodySize, DateCache, EarlyHints, Ending, Outcome, RequestFacts, ResponseHead, Version,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

type Field = (Vec<u8>, Vec<u8>);

/// Fields of all kinds: plain, meaningful to the server, and made to do harm.
fn fields() -> impl Strategy<Value = Vec<Field>> {
    let known = select(vec![
        "content-length",
        "Content-Length",
        "transfer-encoding",
        "Transfer-Encoding",
        "date",
        "Connection",
        "rack.hijack",
        "status",
        "x",
    ]);
    let name = prop_oneof![
        known.prop_map(|name| name.as_bytes().to_vec()),
        vec(any::<u8>(), 0..6),
        "[A-Za-z-]{1,8}".prop_map(String::into_bytes),
    ];
    let value = prop_oneof![
        vec(any::<u8>(), 0..12),
        vec(select(b"ab\r\n\0\t :".to_vec()), 0..12),
        select(vec!["1", "23", "chunked", "gzip", "a\nb", "x\r\ny: z", "\r\n\r\n"])
            .prop_map(|value| value.as_bytes().to_vec()),
    ];
    vec((name, value), 0..8)
}

fn request() -> impl Strategy<Value = RequestFacts> {
    let version = select(vec![Version::Http10, Version::Http11]);
    (any::<bool>(), version, any::<bool>()).prop_map(|(head, version, persistent)| RequestFacts {
        head,
        version,
        persistent,
    })
}

fn size() -> impl Strategy<Value = BodySize> {
    prop_oneof![any::<u64>().prop_map(BodySize::Known), Just(BodySize::Unknown), Just(BodySize::Stream),]
}

fn status() -> impl Strategy<Value = u16> {
    prop_oneof![select(vec![101, 103, 200, 204, 304, 404, 500]), any::<u16>()]
}

/// The values of one field in a head's lines.
fn values<'a>(lines: &'a [&'a [u8]], name: &str) -> Vec<&'a [u8]> {
    let start = format!("{name}: ");
    lines
        .iter()
        .filter(|line| line.len() >= start.len())
        .map(|line| line.split_at(start.len()))
        .filter(|(name, _)| name.eq_ignore_ascii_case(start.as_bytes()))
        .map(|(_, value)| value)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn nothing_the_application_returns_breaks_the_head(
        status in status(),
        fields in fields(),
        request in request(),
        size in size(),
    ) {
        let mut out = Vec::new();
        let date = *DateCache::default().get(1);
        let mut head = ResponseHead::new(&mut out, status, &date);
        let mut most = 0;
        for (name, value) in &fields {
            if head.field(name, value) == Outcome::Sent {
                most += value.split(|&byte| byte == b'\n').count();
            }
        }
        let Ending { framing, persists } = head.finish(request, size);

        // It ends in the only empty line, and has no control byte but in its line ends.
        prop_assert!(out.ends_with(b"\r\n\r\n"));
        let text = &out[..out.len() - 4];
        let mut lines = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
            lines.push(&rest[..at]);
            rest = &rest[at + 2..];
        }
        lines.push(rest);
        for line in &lines {
            prop_assert!(!line.is_empty());
            prop_assert!(!line.iter().any(|&byte| (byte < 32 && byte != 9) || byte == 127));
        }
        // Status, date, framing, connection, and no line that nobody gave.
        prop_assert!(lines.len() <= 4 + most);

        // There are no two opinions about where the body ends.
        let lengths = values(&lines, "content-length");
        let codings = values(&lines, "transfer-encoding");
        prop_assert!(lengths.len() + codings.len() <= 1);
        prop_assert_eq!(values(&lines, "date"), vec![&date[..]]);
        match framing {
            BodyFraming::Length(length) => {
                prop_assert_eq!(lengths.len(), 1);
                let told = String::from_utf8(lengths[0].to_vec()).unwrap();
                prop_assert_eq!(told.parse::<u64>(), Ok(length));
            }
            BodyFraming::Chunked => {
                prop_assert_eq!(codings, vec![b"chunked"]);
                prop_assert_eq!(request.version, Version::Http11);
            }
            BodyFraming::Raw => prop_assert_eq!(codings.len(), 1),
            BodyFraming::UntilClose => prop_assert!(lengths.is_empty() && codings.is_empty()),
            BodyFraming::None => prop_assert!(request.head || matches!(status, 100..=199 | 204 | 304)),
        }
        if request.head && status != 101 {
            prop_assert_eq!(framing, BodyFraming::None);
        }
        if status != 101 {
            let said: &[&[u8]] = match (persists, request.version) {
                (false, _) => &[b"close"],
                (true, Version::Http10) => &[b"keep-alive"],
                (true, Version::Http11) => &[],
            };
            prop_assert_eq!(values(&lines, "connection"), said);
        }
        // Nothing goes on whose end the client cannot see.
        if persists {
            prop_assert!(request.persistent && size != BodySize::Stream && !matches!(status, 100..=199));
            prop_assert!(matches!(framing, BodyFraming::None | BodyFraming::Length(_) | BodyFraming::Chunked));
        }
    }

    #[test]
    fn nothing_the_application_hints_breaks_the_interim_head(fields in fields()) {
        let mut out = Vec::new();
        let mut hints = EarlyHints::new(&mut out);
        let mut any = false;
        for (name, value) in &fields {
            any |= hints.field(name, value) == Outcome::Sent;
        }
        prop_assert_eq!(hints.finish(), any);
        prop_assert_eq!(out.is_empty(), !any);
        if any {
            let ends = out.windows(4).filter(|window| window == b"\r\n\r\n").count();
            prop_assert!(out.ends_with(b"\r\n\r\n") && ends == 1);
        }
    }
}
