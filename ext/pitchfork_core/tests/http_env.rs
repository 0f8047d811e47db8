//! How the fields of a request become keys of a Rack environment.

use pitchfork_core::http::{EnvScratch, Head, Limits, Progress};

#[track_caller]
fn head(text: &[u8]) -> Head {
    let mut head = Head::default();
    let result = head.parse(text, &Limits::default());
    assert_eq!(result, Ok(Progress::Complete), "{}", text.escape_ascii());
    head
}

/// The environment's fields of a request with the given lines.
fn env(lines: &str) -> Vec<(String, String, String)> {
    let text = format!("GET / HTTP/1.0\r\n{lines}\r\n\r\n");
    env_of(text.as_bytes())
}

fn env_of(buf: &[u8]) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    head(buf).for_each_env_field(buf, &mut EnvScratch::default(), |name, key, value| {
        found.push((text_of(name), text_of(key), text_of(value)));
    });
    found
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn check_env(lines: &str, expected: &[(&str, &str, &str)]) {
    let found = env(lines);
    let found: Vec<_> = found.iter().map(|(name, key, value)| (name.as_str(), key.as_str(), value.as_str())).collect();
    assert_eq!(found, expected, "{lines:?}");
}

#[test]
fn env_keys_are_cgi_names() {
    check_env(
        "Accept: a\r\nx-Forwarded-for: b\r\nX.y: c\r\nEmpty:",
        &[
            ("Accept", "HTTP_ACCEPT", "a"),
            ("x-Forwarded-for", "HTTP_X_FORWARDED_FOR", "b"),
            ("X.y", "HTTP_X.Y", "c"),
            ("Empty", "HTTP_EMPTY", ""),
        ],
    );
}

#[test]
fn repeated_fields_are_joined_where_the_first_stands() {
    check_env(
        "A: 1\r\nCookie: x=1\r\nB: 2\r\na: 3\r\ncookie: y=2\r\nA:",
        &[("A", "HTTP_A", "1, 3, "), ("Cookie", "HTTP_COOKIE", "x=1; y=2"), ("B", "HTTP_B", "2")],
    );
}

#[test]
fn the_dashed_spelling_wins_wherever_it_stands() {
    let dashed = [("X-Real-Ip", "HTTP_X_REAL_IP", "real")];
    check_env("X-Real-Ip: real\r\nX_Real_Ip: forged", &dashed);
    check_env("X_Real_Ip: forged\r\nX-Real-Ip: real", &dashed);
    check_env("X_Real-Ip: a\r\nX-Real-Ip: real\r\nx-real_ip: b", &dashed);
    check_env("X_Real_Ip: a\r\nX-Real_Ip: b", &[("X_Real_Ip", "HTTP_X_REAL_IP", "a, b")]);
    check_env("X_A: forged\r\nX-A: 1\r\nX_A: forged\r\nX-A: 2", &[("X-A", "HTTP_X_A", "1, 2")]);
}

#[test]
fn fields_with_keys_of_their_own_are_left_out() {
    check_env("Content-Type: a\r\nContent_Type: a\r\nContent-Length: 1\r\nVersion: x\r\nversion: y", &[]);
    check_env(
        "Versions: 1\r\nTransfer-Encodings: x",
        &[("Versions", "HTTP_VERSIONS", "1"), ("Transfer-Encodings", "HTTP_TRANSFER_ENCODINGS", "x")],
    );
}

#[test]
fn the_targets_authority_replaces_host() {
    for (host, version) in [("Host: h\r\n", 1), ("Host: h\r\n", 0), ("", 0)] {
        let text = format!("GET http://t:1/ HTTP/1.{version}\r\n{host}\r\n");
        let found = env_of(text.as_bytes());
        assert_eq!(found, [("Host".into(), "HTTP_HOST".into(), "t:1".into())], "{text:?}");
    }
}

#[test]
fn content_type_follows_the_rules_of_other_fields() {
    for (lines, expected) in [
        ("A: b", None),
        ("Content-Type: a", Some("a")),
        ("content-type: a\r\nContent-Type: b", Some("a, b")),
        ("Content_Type: a", Some("a")),
        ("Content_Type: a\r\nContent-Type: b", Some("b")),
    ] {
        let text = format!("GET / HTTP/1.0\r\n{lines}\r\n\r\n");
        let head = head(text.as_bytes());
        let found = head.content_type(text.as_bytes());
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{lines}");
    }
}
