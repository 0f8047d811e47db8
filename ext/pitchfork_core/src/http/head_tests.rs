use super::*;

/// Parses a request that must be complete.
#[track_caller]
fn head(text: &[u8]) -> Head {
    let mut head = Head::default();
    let result = head.parse(text, &Limits::default());
    assert_eq!(result, Ok(Progress::Complete), "{}", text.escape_ascii());
    head
}

fn parse(text: &[u8], limits: &Limits) -> Result<Progress, Reject> {
    Head::default().parse(text, limits)
}

/// The outcome of a request with the given request line.
fn line(line: &str) -> Result<Progress, Reject> {
    let text = format!("{line}\r\nHost: a\r\n\r\n");
    parse(text.as_bytes(), &Limits::default())
}

/// The outcome of a POST with `Host` and the given lines.
fn fields(lines: &str) -> Result<Progress, Reject> {
    let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
    parse(text.as_bytes(), &Limits::default())
}

#[test]
fn a_plain_request_is_read() {
    let text = b"GET /a/b?c=d#e HTTP/1.1\r\nHost: h:81\r\nAccept:  x y \t\r\nEmpty:\r\n\r\nGET";
    let head = head(text);
    assert_eq!(head.len(), text.len() - 3);
    assert_eq!(head.method(text), "GET");
    assert_eq!(head.version(), Version::Http11);
    assert_eq!(head.form(), Form::Origin);
    assert_eq!(head.raw_target(text), "/a/b?c=d#e");
    assert_eq!(head.request_uri(text), "/a/b?c=d");
    assert_eq!(head.path(text), "/a/b");
    assert_eq!(head.query(text), "c=d");
    assert_eq!(head.framing(), Framing::None);
    assert!(!head.is_head());
    assert!(!head.expect_continue());
    let expected: [(&[u8], &[u8]); 3] = [(b"Host", b"h:81"), (b"Accept", b"x y"), (b"Empty", b"")];
    assert!(head.fields(text).eq(expected));
}

#[test]
fn any_token_is_a_method_and_its_case_counts() {
    let longest = "M".repeat(32);
    for method in ["GET", "QUERY", "M-SEARCH", "get", "!#$%&'*+.^_`|~0", &longest] {
        let text = format!("{method} / HTTP/1.0\r\n\r\n");
        assert_eq!(head(text.as_bytes()).method(text.as_bytes()), method);
    }
    assert!(head(b"HEAD / HTTP/1.0\r\n\r\n").is_head());
    assert!(!head(b"head / HTTP/1.0\r\n\r\n").is_head());
}

#[test]
fn a_bad_request_line_is_refused() {
    let long = "M".repeat(33);
    for (text, reject) in [
        ("", Reject::LeadingEmptyLines),
        (" GET / HTTP/1.1", Reject::Method),
        ("G\u{e9}T / HTTP/1.1", Reject::Method),
        ("G@T / HTTP/1.1", Reject::Method),
        ("\u{16}\u{3}\u{1}", Reject::Method),
        ("GET", Reject::Method),
        ("GET\t/ HTTP/1.1", Reject::Method),
        (&format!("{long} / HTTP/1.1"), Reject::MethodTooLong),
        ("CONNECT a:1 HTTP/1.1", Reject::Tunnel),
        ("GET a:1 HTTP/1.1", Reject::Tunnel),
        ("GET a HTTP/1.1", Reject::Target),
        ("GET * HTTP/1.1", Reject::Target),
        ("GET  / HTTP/1.1", Reject::Target),
        ("GET /\t HTTP/1.1", Reject::TargetByte),
        ("GET /\0 HTTP/1.1", Reject::TargetByte),
        ("GET /\u{7f} HTTP/1.1", Reject::TargetByte),
        ("GET /a b HTTP/1.1", Reject::VersionMalformed),
        ("GET /", Reject::VersionMissing),
        ("GET / ", Reject::VersionMissing),
        ("GET /  HTTP/1.1", Reject::VersionMalformed),
        ("GET / http/1.1", Reject::VersionMalformed),
        ("GET / HTTP/1", Reject::VersionMalformed),
        ("GET / HTTP/1.", Reject::VersionMalformed),
        ("GET / HTTP/1.10", Reject::VersionMalformed),
        ("GET / HTTP/1.1 ", Reject::VersionMalformed),
        ("GET / HTTP/11", Reject::VersionMalformed),
        ("GET / HTTP/1.2", Reject::VersionUnsupported),
        ("GET / HTTP/0.9", Reject::VersionUnsupported),
        ("GET / HTTP/2.0", Reject::VersionUnsupported),
        ("PRI * HTTP/2.0", Reject::VersionUnsupported),
    ] {
        // Behind the one empty line that is forgiven.
        let text = format!("\r\n{text}");
        assert_eq!(line(&text), Err(reject), "{text:?}");
    }
    let text = b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(parse(text, &Limits::default()), Err(Reject::TargetEncoding));
}

#[test]
fn one_empty_line_before_the_request_is_skipped() {
    let text = b"\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    let head = head(text);
    assert_eq!((head.method(text), head.path(text)), ("GET", "/a"));
    assert_eq!(head.authority(text).name, "h");
    assert_eq!(head.len(), text.len());
    assert_eq!(line("\r\n\r\nGET / HTTP/1.1"), Err(Reject::LeadingEmptyLines));
}

#[test]
fn line_ends_are_crlf_and_nothing_else() {
    for (text, reject) in [
        ("\nGET / HTTP/1.1\r\n\r\n", Reject::BareLf),
        ("\r\n\nGET / HTTP/1.1\r\n\r\n", Reject::BareLf),
        ("\rGET / HTTP/1.1\r\n\r\n", Reject::BareCr),
        ("GET\n", Reject::BareLf),
        ("GET /\n", Reject::BareLf),
        ("GET / HTTP/1.0\n\n", Reject::BareLf),
        ("GET / HT\n", Reject::BareLf),
        ("GET / HTTP/1.0\rA: b\r\n\r\n", Reject::BareCr),
        ("GET / HTTP/1.0\r\n\n", Reject::BareLf),
        ("GET / HTTP/1.0\r\n\rA", Reject::BareCr),
        ("GET / HTTP/1.0\r\nA: b\n\r\n", Reject::BareLf),
        ("GET / HTTP/1.0\r\nA: b\n\n", Reject::BareLf),
        ("GET / HTTP/1.0\r\nA: b\rc\r\n\r\n", Reject::BareCr),
        ("GET / HTTP/1.0\r\nA: b\r\r\n\r\n", Reject::BareCr),
        ("GET / HTTP/1.0\r\nA\n: b\r\n\r\n", Reject::BareLf),
    ] {
        assert_eq!(parse(text.as_bytes(), &Limits::default()), Err(reject), "{text:?}");
    }
}

#[test]
fn what_is_already_wrong_is_refused_before_the_end_came() {
    let limits = Limits { max_target: 4, max_header_size: 40, max_fields: 1, ..Limits::default() };
    for (text, reject) in [
        ("\u{16}", Reject::Method),
        ("GET /abcd", Reject::TargetTooLong),
        ("GET /\r", Reject::VersionMissing),
        ("GET / X", Reject::VersionMalformed),
        ("PRI * HTTP/2.0\r", Reject::VersionUnsupported),
        ("GET / HTTP/1.1\r\n ", Reject::LineFolding),
        ("GET / HTTP/1.1\r\nA: b\n", Reject::BareLf),
        ("GET / HTTP/1.1\r\nA: \0", Reject::FieldValue),
        ("GET / HTTP/1.1\r\nA: b\r\nC", Reject::TooManyFields),
        ("GET / HTTP/1.1\r\nA: bcdefghijklmnopqrstuv", Reject::HeadTooLong),
    ] {
        assert_eq!(parse(text.as_bytes(), &limits), Err(reject), "{text:?}");
        let prefix = &text.as_bytes()[..text.len() - 1];
        assert_eq!(parse(prefix, &limits), Ok(Progress::Partial), "{text:?}");
    }
}

#[test]
fn each_limit_admits_what_just_fits() {
    let text = b"GET /abc HTTP/1.0\r\nA: b\r\nC: d\r\n\r\n";
    let fitting =
        Limits { max_header_size: text.len(), max_fields: 2, max_target: 4, max_method: 3, ..Limits::default() };
    assert_eq!(parse(text, &fitting), Ok(Progress::Complete));
    for (limits, reject) in [
        (Limits { max_header_size: text.len() - 1, ..fitting }, Reject::HeadTooLong),
        (Limits { max_fields: 1, ..fitting }, Reject::TooManyFields),
        (Limits { max_target: 3, ..fitting }, Reject::TargetTooLong),
        (Limits { max_method: 2, ..fitting }, Reject::MethodTooLong),
    ] {
        assert_eq!(parse(text, &limits), Err(reject));
    }
}

#[test]
fn more_fields_than_usual_are_read_if_the_limit_is_raised() {
    let lines: Vec<_> = (0..300).map(|number| format!("X-{number}: {number}\r\n")).collect();
    let text = format!("GET / HTTP/1.0\r\n{}\r\n", lines.concat());
    assert_eq!(parse(text.as_bytes(), &Limits::default()), Err(Reject::TooManyFields));
    let limits = Limits { max_fields: 300, ..Limits::default() };
    let mut head = Head::default();
    assert_eq!(head.parse(text.as_bytes(), &limits), Ok(Progress::Complete));
    assert_eq!(head.fields(text.as_bytes()).last().unwrap().1, b"299");
}

#[test]
fn a_bad_field_is_refused() {
    for (text, reject) in [
        (": a", Reject::FieldName),
        ("A : b", Reject::FieldName),
        ("A\t: b", Reject::FieldName),
        ("A b: c", Reject::FieldName),
        ("A", Reject::FieldName),
        ("A(: b", Reject::FieldName),
        ("\u{e9}: b", Reject::FieldName),
        ("A: \0", Reject::FieldValue),
        ("A: \u{b}", Reject::FieldValue),
        ("A: \u{7f}", Reject::FieldValue),
        ("A\0: b", Reject::FieldValue),
        ("A: b\r\n c", Reject::LineFolding),
        ("A: b\r\n\tc", Reject::LineFolding),
        ("A:\r\n b", Reject::LineFolding),
        ("Content_Length: 1", Reject::FramingUnderscore),
        ("transfer_encoding: chunked", Reject::FramingUnderscore),
    ] {
        assert_eq!(fields(text), Err(reject), "{text:?}");
    }
    assert_eq!(parse(b"GET / HTTP/1.0\r\n A: b\r\n\r\n", &Limits::default()), Err(Reject::LineFolding));
    assert_eq!(fields("A: tab\tand \u{e9}"), Ok(Progress::Complete));
}

#[test]
fn host_is_there_once_and_valid() {
    for (version, lines, expected) in [
        (1, "", Err(Reject::HostMissing)),
        (1, "Host: a\r\n", Ok(Progress::Complete)),
        (1, "Host:\r\n", Ok(Progress::Complete)),
        (1, "Host: a\r\nhost: a\r\n", Err(Reject::HostRepeated)),
        (1, "Host:\r\nHost:\r\n", Err(Reject::HostRepeated)),
        (1, "Host: a b\r\n", Err(Reject::Host)),
        (1, "Host: a, b\r\n", Err(Reject::Host)),
        (1, "Host: u@a\r\n", Err(Reject::Host)),
        (1, "Host: a/b\r\n", Err(Reject::Host)),
        (1, "Host: \u{e9}\r\n", Err(Reject::Host)),
        (0, "", Ok(Progress::Complete)),
        (0, "Host: a b\r\n", Err(Reject::Host)),
        (0, "Host: a\r\nHost: b\r\n", Err(Reject::HostRepeated)),
    ] {
        // Nor does an authority in the target excuse it.
        for target in ["/", "http://x/"] {
            let text = format!("GET {target} HTTP/1.{version}\r\n{lines}\r\n");
            let result = parse(text.as_bytes(), &Limits::default());
            assert_eq!(result, expected, "{text:?}");
        }
    }
}

#[test]
fn the_authority_is_the_targets_then_hosts_then_localhost() {
    for (target, host, name, port) in [
        ("/", "Host: h\r\n", "h", None),
        ("/", "Host: h:81\r\n", "h", Some("81")),
        ("/", "Host: [::1]:81\r\n", "[::1]", Some("81")),
        ("/", "Host:\r\n", "localhost", None),
        ("/", "", "localhost", None),
        ("http://t:82/", "Host: h:81\r\n", "t", Some("82")),
        ("http://t", "Host: h:81\r\n", "t", None),
        ("http://[::2]", "", "[::2]", None),
    ] {
        let text = format!("GET {target} HTTP/1.0\r\n{host}\r\n");
        let authority = head(text.as_bytes()).authority(text.as_bytes());
        assert_eq!(authority, Authority { name, port }, "{text:?}");
    }
}

#[test]
fn absolute_and_asterisk_form_have_a_path_too() {
    for (line, form, path, query, uri) in [
        ("GET http://h/a?b#c", Form::Absolute, "/a", "b", "/a?b"),
        ("GET http://h", Form::Absolute, "/", "", "/"),
        ("GET http://h?b", Form::Absolute, "/", "b", "/?b"),
        ("OPTIONS *", Form::Asterisk, "*", "", "*"),
        ("OPTIONS /a", Form::Origin, "/a", "", "/a"),
    ] {
        let text = format!("{line} HTTP/1.0\r\n\r\n");
        let (head, buf) = (head(text.as_bytes()), text.as_bytes());
        assert_eq!(head.form(), form, "{line}");
        assert_eq!((head.path(buf), head.query(buf)), (path, query), "{line}");
        assert_eq!(head.request_uri(buf), uri, "{line}");
    }
}

#[test]
fn framing_comes_from_the_fields() {
    for (lines, expected) in [
        ("A: b", Framing::None),
        ("content-LENGTH:  5 ", Framing::Length(5)),
        ("Transfer-encoding: Chunked", Framing::Chunked),
    ] {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n");
        assert_eq!(head(text.as_bytes()).framing(), expected, "{lines}");
    }
    for (lines, reject) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", Reject::LengthAndCoding),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", Reject::LengthAndCoding),
        ("Content-Length: 5\r\ncontent-length: 5", Reject::LengthRepeated),
        ("Content-Length:", Reject::Length),
        ("Content-Length: 5 5", Reject::Length),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", Reject::CodingUnsupported),
    ] {
        assert_eq!(fields(lines), Err(reject), "{lines}");
    }
    let text = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse(text, &Limits::default()), Err(Reject::CodingVersion));
    let limits = Limits { max_body_size: Some(4), ..Limits::default() };
    let text = b"POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(parse(text, &limits), Err(Reject::BodyTooLarge));
}

#[test]
fn only_100_continue_is_expected_and_only_where_it_makes_sense() {
    for (version, lines, expected) in [
        (1, "Expect: 100-continue\r\nContent-Length: 1", Ok(true)),
        (1, "Expect: 100-Continue\r\nTransfer-Encoding: chunked", Ok(true)),
        (1, "Expect:\r\nContent-Length: 1", Ok(false)),
        (1, "Expect: 100-continue", Ok(false)),
        (1, "Expect: 100-continue\r\nContent-Length: 0", Ok(false)),
        (0, "Expect: 100-continue\r\nContent-Length: 1", Ok(false)),
        (1, "Expect: 200-ok", Err(Reject::Expectation)),
        (1, "Expect: 100-continue, x", Err(Reject::Expectation)),
        (1, "Expect: x\r\nExpect: 100-continue", Err(Reject::Expectation)),
        (0, "Expect: x", Err(Reject::Expectation)),
    ] {
        let text = format!("POST / HTTP/1.{version}\r\nHost: a\r\n{lines}\r\n\r\n");
        let mut head = Head::default();
        let result = head.parse(text.as_bytes(), &Limits::default());
        assert_eq!(result.map(|_| head.expect_continue()), expected, "{text:?}");
    }
}

#[test]
fn a_cleared_head_remembers_nothing() {
    let mut head = head(b"POST /a?b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    head.clear();
    let text = b"\r\nGET / HTTP/1.0\r\n\r\n";
    assert_eq!(head.parse(&text[..5], &Limits::default()), Ok(Progress::Partial));
    assert_eq!((head.len(), head.framing()), (0, Framing::None));
    assert_eq!(head.parse(text, &Limits::default()), Ok(Progress::Complete));
    assert_eq!((head.path(text), head.query(text)), ("/", ""));
    assert_eq!(head.fields(text).count(), 0);
    assert_eq!(head.authority(text), Authority::LOCALHOST);
}

#[test]
fn a_complete_head_is_not_parsed_again() {
    let text = b"GET / HTTP/1.0\r\n\r\n\xff\xff";
    let mut head = head(text);
    assert_eq!(head.parse(text, &Limits::default()), Ok(Progress::Complete));
    assert_eq!(head.len(), text.len() - 2);
}

#[test]
fn a_refused_head_is_refused_alike_again() {
    for (text, reject) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", Reject::Length),
        ("GET / HTTP/1.1\r\n\r\n", Reject::HostMissing),
        ("GET / HTTP/1.1\r\nA: \0\r\n", Reject::FieldValue),
    ] {
        let mut head = Head::default();
        for _ in 0..3 {
            assert_eq!(head.parse(text.as_bytes(), &Limits::default()), Err(reject));
        }
    }
}
