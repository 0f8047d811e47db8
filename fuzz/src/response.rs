//! A response's head, read again by somebody who believes nothing: one framing, no line that was not meant, one end.
//!
//! The input's first line is the status and the body's size; each other line is a field of the application's, in which
//! `\n`, `\r`, `\0` and `\\` stand for the bytes they usually do.

use pitchfork_core::http::{
    BodyFraming, BodySize, EarlyHints, Ending, Outcome, RequestFacts, ResponseHead, Version, error_response,
};

const DATE: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";

/// A name and a value.
type Field = (Vec<u8>, Vec<u8>);

/// The target.
pub fn run(input: &[u8]) {
    let mut lines = input.split(|&byte| byte == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let (status, size) = first.split_once(' ').unwrap_or((&first, ""));
    let status = status.parse().unwrap_or(200);
    // No body is larger than a file can be.
    let size = size.parse().unwrap_or(0).min(i64::MAX.unsigned_abs());
    let fields: Vec<Field> = lines.map(field).collect();

    for head in [false, true] {
        for version in [Version::Http10, Version::Http11] {
            for body in [BodySize::Known(size), BodySize::Unknown, BodySize::Stream] {
                for persistent in [false, true] {
                    check_head(status, &fields, RequestFacts { head, version, persistent }, body);
                }
            }
        }
    }
    check_hints(&fields);
    let mut error = Vec::new();
    error_response(&mut error, status, DATE);
    let (found, lines) = read(&error);
    assert_eq!(found, if (100..1000).contains(&status) { status } else { 500 });
    assert_eq!(values(&lines, "connection").len(), usize::from(status != 101));
}

fn field(line: &[u8]) -> Field {
    let colon = line.iter().position(|&byte| byte == b':');
    let name = &line[..colon.unwrap_or(line.len())];
    let value = colon.map_or(&b""[..], |colon| &line[colon + 1..]);
    (unescape(name), unescape(value.strip_prefix(b" ").unwrap_or(value)))
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b'0') => 0,
                Some(&other) => other,
                None => b'\\',
            },
            _ => byte,
        });
    }
    plain
}

fn check_head(status: u16, fields: &[Field], request: RequestFacts, body: BodySize) {
    const BEFORE: &[u8] = b"HTTP/1.1 103 Early Hints\r\n\r\n";
    let mut out = BEFORE.to_vec();
    let mut head = ResponseHead::new(&mut out, status, DATE);
    let outcomes: Vec<_> = fields.iter().map(|(name, value)| head.field(name, value)).collect();
    let Ending { framing, persists } = head.finish(request, body);
    let written = out.strip_prefix(BEFORE).unwrap_or_default();

    let status = if (100..1000).contains(&status) { status } else { 500 };
    let (found, mut lines) = read(written);
    assert_eq!(found, status);
    check_framing(status, &lines, request, body, framing);

    let date = (b"Date".to_vec(), DATE.to_vec());
    assert_eq!(lines.remove(0), date, "the server's date comes first");
    let is_plain = matches!(framing, BodyFraming::None | BodyFraming::Length(_) | BodyFraming::Chunked);
    assert!(!persists || (request.persistent && is_plain && status >= 200 && body != BodySize::Stream));
    let said = match (persists, request.version) {
        (false, _) => Some("close"),
        (true, Version::Http10) => Some("keep-alive"),
        (true, Version::Http11) => None,
    };
    if let Some(said) = said.filter(|_| status != 101) {
        assert_eq!(lines.pop(), Some((b"Connection".to_vec(), said.into())));
    }
    let mut expected = Vec::new();
    for ((name, value), outcome) in fields.iter().zip(outcomes) {
        if is(name, "content-length") || is(name, "transfer-encoding") {
            continue;
        }
        let own = is(name, "date") || (is(name, "connection") && status != 101);
        if own {
            assert_eq!(outcome, Outcome::Replaced);
            continue;
        }
        check_outcome(name, value, outcome);
        if outcome == Outcome::Sent {
            expected.extend(lines_of(name, value));
        }
    }
    lines.retain(|(name, _)| !is(name, "content-length") && !is(name, "transfer-encoding"));
    assert_eq!(lines, expected, "these are not the application's fields");
}

/// What the server does with a field that neither frames the message nor is its own.
fn check_outcome(name: &[u8], value: &[u8], outcome: Outcome) {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with(b"rack.") || lower == b"status" {
        assert_eq!(outcome, Outcome::Skipped);
        return;
    }
    let name_is_token = crate::reference::fields::is_token(name);
    let value_is_clean = !value.iter().any(|&byte| byte != b'\n' && is_control(byte));
    if !name_is_token || !value_is_clean {
        assert!(matches!(outcome, Outcome::Dropped(_)), "{outcome:?}");
    } else if value.contains(&b'\n') && lines_of(name, value).is_empty() {
        assert_eq!(outcome, Outcome::Skipped);
    } else {
        assert_eq!(outcome, Outcome::Sent);
    }
}

/// Rack 2 joins repeated fields with LF.
fn lines_of(name: &[u8], value: &[u8]) -> Vec<Field> {
    let lines = value.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() || value.is_empty());
    lines.map(|line| (name.to_vec(), line.to_vec())).collect()
}

fn check_framing(status: u16, lines: &[Field], request: RequestFacts, body: BodySize, framing: BodyFraming) {
    let lengths = values(lines, "content-length");
    let codings = values(lines, "transfer-encoding");
    assert!(lengths.len() + codings.len() <= 1, "framed twice");
    let length = lengths.first().map(|value| {
        assert!(value.iter().all(u8::is_ascii_digit), "{}", value.escape_ascii());
        String::from_utf8_lossy(value).parse::<u64>().ok().filter(|&length| length < 1 << 63)
    });
    assert_ne!(length, Some(None), "no length that fits");
    let length = length.flatten();
    let coding = codings.first().map(|value| crate::reference::fields::trim(value));
    assert!(coding.as_ref().is_none_or(|coding| !coding.is_empty()), "a coding without a name");

    // RFC 9112, section 6.3.
    let bodyless = (100..200).contains(&status) || status == 204 || status == 304;
    if bodyless {
        assert!(coding.is_none() && (length.is_none() || status == 304), "{status} is framed");
    }
    let expected = match (length, coding) {
        _ if status == 101 && body == BodySize::Stream => BodyFraming::UntilClose,
        _ if bodyless || request.head => BodyFraming::None,
        (Some(length), _) => BodyFraming::Length(length),
        (None, Some(_)) if framing == BodyFraming::Raw => BodyFraming::Raw,
        (None, Some(coding)) => {
            assert!(coding == b"chunked" && request.version == Version::Http11);
            BodyFraming::Chunked
        }
        (None, None) => BodyFraming::UntilClose,
    };
    assert_eq!(framing, expected, "the head says one thing, the server does another");
    if let BodySize::Known(size) = body {
        // A known size is never left for the connection's end to tell.
        assert_ne!(framing, BodyFraming::UntilClose);
        assert_ne!(framing, BodyFraming::Chunked, "{size}");
    }
}

fn check_hints(fields: &[Field]) {
    let mut out = Vec::new();
    let mut hints = EarlyHints::new(&mut out);
    let mut expected = Vec::new();
    for (name, value) in fields {
        let outcome = hints.field(name, value);
        if ["content-length", "transfer-encoding", "connection", "date"].iter().any(|known| is(name, known)) {
            assert_eq!(outcome, Outcome::Skipped);
            continue;
        }
        check_outcome(name, value, outcome);
        if outcome == Outcome::Sent {
            expected.extend(lines_of(name, value));
        }
    }
    let sent = hints.finish();
    assert_eq!(sent, !expected.is_empty());
    if sent {
        assert_eq!(read(&out), (103, expected));
    } else {
        assert!(out.is_empty());
    }
}

/// The status and the fields of a head that must be one, and nothing but one.
fn read(head: &[u8]) -> (u16, Vec<Field>) {
    let text = head.escape_ascii();
    let mut lines = crate::reference::split(head, b"\r\n");
    assert_eq!((lines.pop(), lines.pop()), (Some(vec![]), Some(vec![])), "no empty line at the end: {text}");
    let status_line = lines.remove(0);
    let status = match status_line.strip_prefix(b"HTTP/1.1 ") {
        Some(rest) if rest.len() >= 4 && rest[..3].iter().all(u8::is_ascii_digit) && rest[3] == b' ' => {
            assert!(!rest.iter().copied().any(is_control), "a control byte in the status line: {text}");
            rest[..3].iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'))
        }
        _ => panic!("no status line: {text}"),
    };
    let fields = lines.iter().map(|line| {
        assert!(!line.is_empty(), "an empty line within: {text}");
        assert!(!line.iter().copied().any(is_control), "a control byte: {text}");
        let colon = line.iter().position(|&byte| byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or_else(|| panic!("no colon: {text}")));
        assert!(crate::reference::fields::is_token(name), "no field name: {text}");
        (name.to_vec(), value.strip_prefix(b": ").unwrap_or_else(|| panic!("no value: {text}")).to_vec())
    });
    (status, fields.collect())
}

fn values(lines: &[Field], wanted: &str) -> Vec<Vec<u8>> {
    lines.iter().filter(|(name, _)| is(name, wanted)).map(|(_, value)| value.clone()).collect()
}

fn is(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}

fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}
