//! A request's head: the same verdict however it is cut, and accessors that agree with each other.

use std::collections::BTreeSet;

use pitchfork_core::http::{Authority, EnvScratch, Form, Framing, Head, Limits, Progress, Reject, Version};

use crate::{pieces, tight_limits};

/// Everything that can be asked of a head.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    length: usize,
    method: String,
    target: String,
    uri: String,
    path: String,
    query: String,
    form: Form,
    version: Version,
    host: (String, Option<String>),
    fields: Vec<Pair>,
    env: Vec<Pair>,
    content_type: Option<Vec<u8>>,
    framing: Framing,
    expects_continue: bool,
    head_request: bool,
}

/// The target.
pub fn run(input: &[u8]) {
    let tight = tight_limits();
    for limits in [Limits::default(), tight] {
        check(input, &limits);
    }
}

fn check(input: &[u8], limits: &Limits) {
    let mut kept = Head::default();
    let whole = kept.parse(input, limits).map(|progress| (progress, snapshot(&kept, input, progress)));
    if let Ok((Progress::Complete, Some(answers))) = &whole {
        check_answers(answers, &kept, input, limits);
    }
    for cuts in pieces::cuts(input) {
        // One that served before must not remember anything.
        kept.clear();
        let mut verdict = Ok(Progress::Partial);
        for end in cuts {
            verdict = kept.parse(&input[..end], limits);
            if verdict != Ok(Progress::Partial) {
                assert_eq!(kept.parse(&input[..end], limits), verdict, "the second answer differs");
                break;
            }
        }
        let verdict = verdict.map(|progress| (progress, snapshot(&kept, input, progress)));
        assert_eq!(verdict, whole, "the verdict depends on the cuts");
    }
    if let Err(reject) = &whole {
        check_reject(*reject);
    }
}

fn check_reject(reject: Reject) {
    let status = reject.status();
    assert!([400, 413, 414, 417, 431, 501, 505].contains(&status), "{reject}: {status}");
}

fn snapshot(head: &Head, input: &[u8], progress: Progress) -> Option<Answers> {
    if progress == Progress::Partial {
        return None;
    }
    let Authority { name, port } = head.authority(input);
    Some(Answers {
        length: head.len(),
        method: head.method(input).to_owned(),
        target: head.raw_target(input).to_owned(),
        uri: head.request_uri(input).into_owned(),
        path: head.path(input).to_owned(),
        query: head.query(input).to_owned(),
        form: head.form(),
        version: head.version(),
        host: (name.to_owned(), port.map(str::to_owned)),
        fields: head.fields(input).map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
        env: env(head, input),
        content_type: head.content_type(input).map(std::borrow::Cow::into_owned),
        framing: head.framing(),
        expects_continue: head.expect_continue(),
        head_request: head.is_head(),
    })
}

fn check_answers(answers: &Answers, head: &Head, input: &[u8], limits: &Limits) {
    let Answers { length, method, target, uri, path, query, form, fields, env, .. } = answers;
    assert!(*length <= input.len() && *length <= limits.max_header_size);
    assert!(input[..*length].ends_with(b"\r\n\r\n"));
    let mut again = Head::default();
    assert_eq!(again.parse(&input[..*length], limits), Ok(Progress::Complete), "it needed what lies behind it");
    assert_eq!(again.parse(&input[..*length], limits), Ok(Progress::Complete));
    let mut shorter = Head::default();
    assert_eq!(shorter.parse(&input[..*length - 1], limits), Ok(Progress::Partial), "it did not need its last byte");

    assert!((1..=limits.max_method).contains(&method.len()) && method.bytes().all(is_token));
    assert_eq!(answers.head_request, method == "HEAD");
    assert!((1..=limits.max_target).contains(&target.len()));
    assert!(target.bytes().all(|byte| byte > b' ' && byte != 0x7f));
    assert!(target.contains(query.as_str()) && !uri.contains('#') && !path.contains(['?', '#']));
    assert!(*uri == *path || *uri == format!("{path}?{query}"), "{uri} is not {path} and {query}");
    match form {
        Form::Asterisk => assert_eq!((method.as_str(), path.as_str(), query.as_str()), ("OPTIONS", "*", "")),
        Form::Origin | Form::Absolute => assert!(path.starts_with('/')),
    }
    if let Some(port) = &answers.host.1 {
        // Ruby's `Integer` takes a leading zero for octal.
        assert!(port.parse::<u16>().is_ok_and(|number| number.to_string() == *port));
    }
    assert!(!answers.host.0.is_empty() && answers.host.0.is_ascii());
    assert!(fields.len() <= limits.max_fields);
    for (name, value) in fields {
        assert!(!name.is_empty() && name.iter().copied().all(is_token));
        assert!(!value.iter().copied().any(is_control));
        assert!(!matches!(value.as_slice(), [b' ' | b'\t', ..] | [.., b' ' | b'\t']));
    }
    check_env(env);
    if answers.expects_continue {
        assert_eq!(answers.version, Version::Http11);
        assert!(!matches!(answers.framing, Framing::None | Framing::Length(0)));
    }
    // With another buffer than the one that was parsed the answers are nonsense, but they are answers.
    for buffer in [&b""[..], &input[..*length / 2], &[0xff; 64]] {
        drop(snapshot(head, buffer, Progress::Complete));
    }
}

/// What CGI allows as a name, and what cannot end a line of a log or of a response.
fn check_env(env: &[(Vec<u8>, Vec<u8>)]) {
    let keys: BTreeSet<&[u8]> = env.iter().map(|(key, _)| key.as_slice()).collect();
    assert_eq!(keys.len(), env.len(), "a key comes twice");
    for (key, value) in env {
        let rest = key.strip_prefix(b"HTTP_").unwrap_or_default();
        let fits = |byte: u8| is_token(byte) && byte != b'-' && !byte.is_ascii_lowercase();
        assert!(!rest.is_empty() && rest.iter().copied().all(fits), "{}", key.escape_ascii());
        assert!(!matches!(rest, b"VERSION" | b"CONTENT_TYPE" | b"CONTENT_LENGTH"), "{}", key.escape_ascii());
        assert!(!value.iter().copied().any(is_control), "{}", value.escape_ascii());
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// A name, or a key, and a value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// The keys with `HTTP_`, in their order.
#[must_use]
pub fn env(head: &Head, input: &[u8]) -> Vec<Pair> {
    let mut env = Vec::new();
    head.for_each_env_field(input, &mut EnvScratch::default(), |_, key, value| {
        env.push((key.to_vec(), value.to_vec()));
    });
    env
}
