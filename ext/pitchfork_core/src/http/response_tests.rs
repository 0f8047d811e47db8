use super::*;

const DATE: &[u8; DATE_LENGTH] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const HTTP10: RequestFacts = RequestFacts { head: false, version: Version::Http10, persistent: false };
const HTTP11: RequestFacts = RequestFacts { head: false, version: Version::Http11, persistent: false };
const HEAD: RequestFacts = RequestFacts { head: true, version: Version::Http11, persistent: false };

/// The lines of a finished head without status line and date, and the framing.
#[track_caller]
fn lines(status: u16, fields: &[(&str, &str)], request: RequestFacts, body: BodySize) -> (Vec<String>, BodyFraming) {
    let mut out = Vec::new();
    let mut head = ResponseHead::new(&mut out, status, DATE);
    for (name, value) in fields {
        head.field(name.as_bytes(), value.as_bytes());
    }
    let Ending { framing, .. } = head.finish(request, body);
    let text = String::from_utf8(out).unwrap();
    let text = text.strip_suffix("\r\n\r\n").expect("an empty line at the end");
    let mut lines = text.split("\r\n").map(str::to_owned);
    assert_eq!(lines.next().unwrap(), format!("HTTP/1.1 {status} {}", status::reason(status)));
    assert_eq!(lines.next().unwrap(), "Date: Sun, 06 Nov 1994 08:49:37 GMT");
    (lines.collect(), framing)
}

fn outcome(status: u16, name: &[u8], value: &[u8]) -> Outcome {
    ResponseHead::new(&mut Vec::new(), status, DATE).field(name, value)
}

#[test]
fn a_whole_head_in_order() {
    let mut out = b"already there".to_vec();
    let mut head = ResponseHead::new(&mut out, 200, DATE);
    assert_eq!(head.field(b"X-One", b"1"), Outcome::Sent);
    assert_eq!(head.field(b"x-two", b""), Outcome::Sent);
    let ending = Ending { framing: BodyFraming::Length(12), persists: false };
    assert_eq!(head.finish(HTTP11, BodySize::Known(12)), ending);
    let expected = "already thereHTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        X-One: 1\r\nx-two: \r\nContent-Length: 12\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn the_end_of_the_body_is_told_in_the_way_the_client_understands() {
    use BodyFraming::{Chunked, Length, None, Raw, UntilClose};
    use BodySize::{Known, Stream, Unknown};
    let close = "Connection: close";
    let cl: &[(&str, &str)] = &[("CONTENT-length", "7")];
    let te: &[(&str, &str)] = &[("transfer-ENCODING", "chunked")];
    for (status, fields, request, body, expected, framing) in [
        (200, &[][..], HTTP11, Known(0), &["Content-Length: 0"][..], Length(0)),
        (200, &[], HTTP10, Known(3), &["Content-Length: 3"], Length(3)),
        (200, &[], HTTP11, Unknown, &["Transfer-Encoding: chunked"], Chunked),
        (200, &[], HTTP10, Unknown, &[], UntilClose),
        (200, &[], HTTP11, Stream, &[], UntilClose),
        (200, cl, HTTP11, Known(9), &["CONTENT-length: 7"], Length(7)),
        (200, cl, HTTP11, Unknown, &["CONTENT-length: 7"], Length(7)),
        (200, cl, HTTP10, Unknown, &["CONTENT-length: 7"], Length(7)),
        (200, cl, HTTP11, Stream, &["CONTENT-length: 7"], Length(7)),
        (200, te, HTTP11, Known(9), &["transfer-ENCODING: chunked"], Raw),
        (200, te, HTTP11, Unknown, &["transfer-ENCODING: chunked"], Raw),
        (200, te, HTTP11, Stream, &["transfer-ENCODING: chunked"], Raw),
        (200, &[], HEAD, Known(3), &["Content-Length: 3"], None),
        (200, &[], HEAD, Known(0), &[], None),
        (200, &[], HEAD, Unknown, &[], None),
        (200, &[], HEAD, Stream, &[], None),
        (200, cl, HEAD, Known(0), &["CONTENT-length: 7"], None),
        (200, te, HEAD, Known(3), &["transfer-ENCODING: chunked"], None),
        (204, &[], HTTP11, Known(3), &[], None),
        (204, &[], HTTP11, Unknown, &[], None),
        (204, &[], HEAD, Known(3), &[], None),
        (204, cl, HTTP11, Known(0), &[], None),
        (204, te, HTTP11, Unknown, &[], None),
        (304, &[], HTTP11, Known(3), &[], None),
        (304, cl, HTTP11, Known(0), &["CONTENT-length: 7"], None),
        (304, te, HTTP11, Known(0), &[], None),
        (103, cl, HTTP11, Known(3), &[], None),
        (205, &[], HTTP11, Known(0), &["Content-Length: 0"], Length(0)),
    ] {
        let expected: Vec<_> = expected.iter().copied().chain([close]).collect();
        let case = format!("{status} {fields:?} {request:?} {body:?}");
        let (found, found_framing) = lines(status, fields, request, body);
        assert_eq!((found, found_framing), (expected.into_iter().map(str::to_owned).collect(), framing), "{case}");
    }
}

#[test]
fn length_and_coding_are_never_both_sent_and_never_twice() {
    let chunked = ("Transfer-Encoding", "chunked");
    let length = ("Content-Length", "7");
    let other = ("X", "y");
    for (fields, expected) in [
        (&[length, other, chunked][..], &["X: y", "Transfer-Encoding: chunked"][..]),
        (&[chunked, other, length], &["Transfer-Encoding: chunked", "X: y"]),
        (&[length, chunked, length], &["Transfer-Encoding: chunked"]),
        (&[chunked, chunked], &["Transfer-Encoding: chunked"]),
        (&[length, other, length], &["Content-Length: 7", "X: y"]),
        (&[length, ("content-length", "8")], &["Content-Length: 7"]),
        (&[("content-length", "x"), length], &["Content-Length: 7"]),
    ] {
        let (mut found, _) = lines(200, fields, HTTP11, BodySize::Unknown);
        assert_eq!(found.pop().unwrap(), "Connection: close");
        assert_eq!(found, expected, "{fields:?}");
    }
}

#[test]
fn an_invalid_length_is_dropped_and_computed_instead() {
    for value in ["", "x", "-1", "+1", " 1", "1 ", "1, 1", "1\n1", "1.0", "9223372036854775808"] {
        assert!(matches!(outcome(200, b"content-length", value.as_bytes()), Outcome::Dropped(_)));
        let (found, framing) = lines(200, &[("content-length", value)], HTTP11, BodySize::Known(4));
        assert_eq!(found, ["Content-Length: 4", "Connection: close"], "{value}");
        assert_eq!(framing, BodyFraming::Length(4));
    }
}

#[test]
fn date_and_connection_are_the_servers() {
    for name in ["Date", "date", "Connection", "CONNECTION"] {
        assert_eq!(outcome(200, name.as_bytes(), b"x"), Outcome::Replaced, "{name}");
    }
    let fields = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Date", "x")];
    let (found, framing) = lines(101, &fields, HTTP11, BodySize::Stream);
    assert_eq!(found, ["Connection: Upgrade", "Upgrade: websocket"]);
    assert_eq!(framing, BodyFraming::UntilClose);
}

/// What the head says about the connection, and whether it goes on.
fn connection(status: u16, fields: &[(&str, &str)], request: RequestFacts, body: BodySize) -> (Option<String>, bool) {
    let mut out = Vec::new();
    let mut head = ResponseHead::new(&mut out, status, DATE);
    for (name, value) in fields {
        head.field(name.as_bytes(), value.as_bytes());
    }
    let persists = head.finish(request, body).persists;
    let text = String::from_utf8(out).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Connection: "));
    (line.map(str::to_owned), persists)
}

#[test]
fn a_connection_goes_on_if_both_sides_want_it_and_the_end_is_plain() {
    use BodySize::{Known, Stream, Unknown};
    let te: &[(&str, &str)] = &[("transfer-encoding", "chunked")];
    let cl: &[(&str, &str)] = &[("content-length", "3")];
    for (status, fields, head, body, http10, http11) in [
        (200, &[][..], false, Known(3), true, true),
        (200, &[], false, Known(0), true, true),
        (200, cl, false, Unknown, true, true),
        (200, &[], false, Unknown, false, true),
        (200, te, false, Unknown, false, false),
        (200, te, false, Known(3), false, false),
        (200, &[], false, Stream, false, false),
        (200, cl, false, Stream, false, false),
        (200, &[], true, Known(3), true, true),
        (200, &[], true, Unknown, true, true),
        (200, te, true, Unknown, true, true),
        (204, &[], false, Known(0), true, true),
        (304, cl, false, Known(0), true, true),
        (404, &[], false, Known(3), true, true),
        (500, &[], false, Known(3), true, true),
        (103, &[], false, Known(0), false, false),
        (200, &[("Connection", "close")], false, Known(3), false, false),
        (200, &[("connection", "x, Close")], false, Known(3), false, false),
        (200, &[("connection", "keep-alive")], false, Known(3), true, true),
    ] {
        for (version, persists) in [(Version::Http10, http10), (Version::Http11, http11)] {
            let said = match (persists, version) {
                (false, _) => Some("close"),
                (true, Version::Http10) => Some("keep-alive"),
                (true, Version::Http11) => None,
            };
            let case = format!("{status} {fields:?} {head} {body:?} {version:?}");
            let wanted = RequestFacts { head, version, persistent: true };
            let found = connection(status, fields, wanted, body);
            assert_eq!(found, (said.map(str::to_owned), persists), "{case}");
            let unwanted = RequestFacts { persistent: false, ..wanted };
            assert_eq!(connection(status, fields, unwanted, body), (Some("close".to_owned()), false), "{case}");
        }
    }
    let wanted = RequestFacts { persistent: true, ..HTTP11 };
    assert_eq!(connection(101, &[], wanted, Stream), (None, false));
    assert_eq!(connection(101, &[], wanted, Known(0)), (None, false));
}

#[test]
fn what_is_for_the_server_is_not_sent() {
    for name in ["rack.hijack", "Rack.x", "rack.", "status", "Status"] {
        assert_eq!(outcome(200, name.as_bytes(), b"\0"), Outcome::Skipped, "{name}");
    }
    assert_eq!(outcome(200, b"rack", b"x"), Outcome::Sent);
    assert_eq!(outcome(200, b"x-status", b"x"), Outcome::Sent);
}

#[test]
fn a_value_with_line_feeds_is_one_line_each() {
    let fields = [("Set-Cookie", "a=1\nb=2"), ("X", "\n1\n\n2\n"), ("Y", "\n")];
    let (found, _) = lines(204, &fields, HTTP11, BodySize::Known(0));
    assert_eq!(found, ["Set-Cookie: a=1", "Set-Cookie: b=2", "X: 1", "X: 2", "Connection: close"]);
}

#[test]
fn an_invalid_field_is_dropped_whole() {
    for (name, value) in [
        ("", "x"),
        ("a b", "x"),
        ("a:", "x"),
        ("a\r\nb", "x"),
        ("\u{e9}", "x"),
        ("a", "x\r\nb: c"),
        ("a", "good\nbad\r"),
        ("a", "x\0"),
        ("a", "x\u{7f}"),
        ("a", "\u{b}"),
        ("transfer-encoding", "chunked\r\na: b"),
        ("transfer-encoding", "gzip\nchunked"),
        ("transfer-encoding", ""),
    ] {
        let mut out = Vec::new();
        let mut head = ResponseHead::new(&mut out, 200, DATE);
        let outcome = head.field(name.as_bytes(), value.as_bytes());
        assert!(matches!(outcome, Outcome::Dropped(_)), "{name:?} {value:?}");
        let _ = head.finish(HTTP11, BodySize::Known(0));
        let mut empty = Vec::new();
        error_response(&mut empty, 200, DATE);
        assert_eq!(out, empty, "{name:?} {value:?}");
    }
    assert_eq!(outcome(200, b"a", b"tab\t and \xff"), Outcome::Sent);
}

#[test]
fn a_status_that_breaks_the_status_line_becomes_500() {
    for status in [0, 99, 1000, u16::MAX] {
        let mut out = Vec::new();
        error_response(&mut out, status, DATE);
        assert!(out.starts_with(b"HTTP/1.1 500 Internal Server Error\r\n"), "{status}");
    }
    let mut out = Vec::new();
    error_response(&mut out, 299, DATE);
    assert!(out.starts_with(b"HTTP/1.1 299 \r\n"));
}

#[test]
fn an_error_response_closes_and_has_no_body() {
    let mut out = Vec::new();
    error_response(&mut out, 400, DATE);
    let expected = "HTTP/1.1 400 Bad Request\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Content-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn early_hints_have_their_lines_and_nothing_else() {
    let mut out = Vec::new();
    let mut hints = EarlyHints::new(&mut out);
    assert_eq!(hints.field(b"link", b"</a>\n</b>"), Outcome::Sent);
    assert_eq!(hints.field(b"Content-Length", b"1"), Outcome::Skipped);
    assert!(matches!(hints.field(b"link", b"\r"), Outcome::Dropped(_)));
    assert!(hints.finish());
    let expected = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nlink: </b>\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn early_hints_without_a_line_are_not_sent() {
    let mut out = b"x".to_vec();
    let mut hints = EarlyHints::new(&mut out);
    assert_eq!(hints.field(b"connection", b"close"), Outcome::Skipped);
    assert!(!hints.finish());
    assert_eq!(out, b"x");
}
