//! A second reading of a request, written from the tables of `docs/HTTP.md` and from RFC 9110, 9112 and 3986.
//!
//! It shares no code and no idea with the parser it is compared with: it waits for the whole head, copies everything,
//! and collects *every* fault it finds instead of stopping at the first, so that the order in which the other one looks
//! does not matter.

pub mod body;
pub mod fields;
pub mod target;

use std::collections::{BTreeMap, BTreeSet};

use body::Framing;
use target::Target;

/// The statuses a refusal may have.
pub type Statuses = BTreeSet<u16>;

/// What became of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T> {
    /// More bytes are needed.
    Incomplete,
    /// Refused, with any of these.
    Refused(Statuses),
    /// Understood.
    Done(T),
}

/// What a request's head says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The bytes it took.
    pub length: usize,
    /// The method, as sent.
    pub method: String,
    /// The path, without query and fragment.
    pub path: String,
    /// What stands after the `?`, without the fragment.
    pub query: String,
    /// 0 or 1.
    pub minor: u8,
    /// The fields by the names CGI has for them.
    pub env: BTreeMap<String, Vec<u8>>,
    /// `SERVER_NAME`.
    pub server_name: String,
    /// `SERVER_PORT`, where the client named one.
    pub server_port: Option<String>,
    /// Where the body ends.
    pub framing: Framing,
    /// Whether the client waits for `100 Continue`.
    pub expects_continue: bool,
}

/// How much is read before it is refused.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a head, and of a trailer section.
    pub head: usize,
    /// Fields in either.
    pub fields: usize,
    /// Bytes of a target.
    pub target: usize,
    /// Bytes of a method.
    pub method: usize,
    /// Bytes of all extensions of a body's chunks.
    pub extensions: usize,
    /// Bytes of a body.
    pub body: Option<u64>,
}

impl From<&pitchfork_core::http::Limits> for Limits {
    fn from(limits: &pitchfork_core::http::Limits) -> Self {
        Self {
            head: limits.max_header_size,
            fields: limits.max_fields,
            target: limits.max_target,
            method: limits.max_method,
            extensions: limits.max_chunk_extensions,
            body: limits.max_body_size,
        }
    }
}

/// Reads a head from the beginning of `input`.
#[must_use]
pub fn head(input: &[u8], limits: &Limits) -> Outcome<Head> {
    let mut faults = Statuses::new();
    let skipped = if input.starts_with(b"\r\n") { 2 } else { 0 };
    let rest = &input[skipped..];
    if rest.starts_with(b"\r\n") {
        return Outcome::Refused([400].into());
    }
    let end = match find(rest, b"\r\n\r\n") {
        Some(end) => end,
        None if input.len() <= limits.head => return Outcome::Incomplete,
        // Too long already; and something else may have been wrong before it was.
        None => rest.len(),
    };
    let length = skipped + end + 4;
    if length > limits.head {
        faults.insert(431);
    }
    let mut lines = split(&rest[..end], b"\r\n").into_iter();
    let (method, raw_target, minor) = request_line(&lines.next().unwrap_or_default(), limits, &mut faults);
    if lines.len() > limits.fields {
        faults.insert(431);
    }
    let listed: Vec<_> = lines.filter_map(|line| fields::field(&line, &mut faults)).collect();

    let target = target::target(&method, &raw_target, &mut faults);
    let (server_name, server_port) = server(&listed, minor, target.authority.as_deref(), &mut faults);
    let framing = body::framing(&listed, minor, limits, &mut faults);
    let expected = expectation(&listed, &mut faults);
    // Never to a 1.0 client; and without a body there is nothing to go on with.
    let expects_continue = expected && minor == 1 && !matches!(framing, Framing::None | Framing::Length(0));
    if !faults.is_empty() {
        return Outcome::Refused(faults);
    }
    let mut env = fields::env(&listed);
    let Target { authority, path, query } = target;
    if let Some(authority) = authority {
        // RFC 9112, section 3.2.2: it takes the place of what `Host` says.
        env.insert("HTTP_HOST".to_owned(), authority);
    }
    Outcome::Done(Head { length, method, path, query, minor, env, server_name, server_port, framing, expects_continue })
}

fn request_line(line: &[u8], limits: &Limits, faults: &mut Statuses) -> (String, Vec<u8>, u8) {
    let mut parts = split(line, b" ");
    if parts.len() != 3 {
        // A line may be bad twice over: what can be told of it still counts.
        faults.insert(400);
        parts.resize(3, Vec::new());
    }
    let [method, target, version] = [&parts[0], &parts[1], &parts[2]];
    if !fields::is_token(method) {
        faults.insert(400);
    }
    if method.len() > limits.method {
        // RFC 9112, section 3: a method longer than any that is implemented.
        faults.insert(501);
    }
    if target.len() > limits.target {
        faults.insert(414);
    }
    let minor = match version.as_slice() {
        b"HTTP/1.0" => 0,
        b"HTTP/1.1" => 1,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            faults.insert(505);
            1
        }
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b'\r', ..]
            if major.is_ascii_digit() && minor.is_ascii_digit() && !matches!([*major, *minor], [b'1', b'0' | b'1']) =>
        {
            // A CR without LF behind a version that is not served: either may be seen first.
            faults.extend([400, 505]);
            1
        }
        _ => {
            faults.insert(400);
            1
        }
    };
    (String::from_utf8_lossy(method).into_owned(), target.clone(), minor)
}

fn server(
    listed: &[fields::Field],
    minor: u8,
    authority: Option<&[u8]>,
    faults: &mut Statuses,
) -> (String, Option<String>) {
    let hosts = fields::values(listed, "host");
    if hosts.len() > 1 || (hosts.is_empty() && minor == 1) {
        faults.insert(400);
    }
    let host = hosts.first().cloned().unwrap_or_default();
    let named = target::authority(&host);
    if named.is_none() {
        faults.insert(400);
    }
    let named = match authority {
        Some(authority) => target::authority(authority),
        None => named,
    };
    match named {
        Some((name, port)) if !name.is_empty() => (name, port),
        _ => ("localhost".to_owned(), None),
    }
}

/// `Expect` is a list (RFC 9110, section 10.1.1), and the members of a list may be empty (section 5.6.1).
fn expectation(listed: &[fields::Field], faults: &mut Statuses) -> bool {
    let joined = fields::values(listed, "expect").join(&b","[..]);
    let members: Vec<_> =
        split(&joined, b",").iter().map(|member| fields::trim(member)).filter(|member| !member.is_empty()).collect();
    if members.iter().any(|member| !member.eq_ignore_ascii_case(b"100-continue")) {
        faults.insert(417);
    }
    !members.is_empty()
}

/// Where `needle` first begins in `hay`.
#[must_use]
pub fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

/// The pieces of `text` between one `by` and the next.
#[must_use]
pub fn split(text: &[u8], by: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, by) {
        pieces.push(rest[..at].to_vec());
        rest = &rest[at + by.len()..];
    }
    pieces.push(rest.to_vec());
    pieces
}
