//! The request target and the authority (RFC 9112, section 3.2; RFC 3986, section 3.2).

use super::{Statuses, find, split};

/// The parts of a target.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Target {
    /// Of an absolute-form target.
    pub authority: Option<Vec<u8>>,
    /// Without query and fragment.
    pub path: String,
    /// Without the `?`.
    pub query: String,
}

/// Takes a target apart.
pub fn target(method: &str, raw: &[u8], faults: &mut Statuses) -> Target {
    if method == "CONNECT" {
        faults.insert(501);
    }
    if raw.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
        faults.insert(400);
    }
    let Ok(text) = std::str::from_utf8(raw) else {
        faults.insert(400);
        return Target::default();
    };
    let text = text.split('#').next().unwrap_or_default();

    if text == "*" {
        if method != "OPTIONS" {
            faults.insert(400);
        }
        return Target { path: "*".to_owned(), ..Target::default() };
    }
    if text.starts_with('/') {
        return path_and_query(text);
    }
    let Some(rest) = behind_scheme(text) else {
        match authority(text.as_bytes()) {
            Some((name, Some(_))) if !name.is_empty() => faults.extend([501]),
            // An authority with an empty port may as well be the beginning of some other URI.
            Some((name, None)) if !name.is_empty() && text.ends_with(':') => faults.extend([400, 501]),
            _ => faults.extend([400]),
        }
        return Target::default();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (named, rest) = rest.split_at(end);
    // RFC 9110, section 4.2.1: without a host it is invalid.
    if authority(named.as_bytes()).is_none_or(|(name, _)| name.is_empty()) {
        faults.insert(400);
    }
    let mut target = path_and_query(rest);
    if target.path.is_empty() {
        target.path.push('/');
    }
    target.authority = Some(named.as_bytes().to_vec());
    target
}

/// Resources of schemes but these are none of an HTTP server's.
fn behind_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(rest)
}

fn path_and_query(text: &str) -> Target {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    Target { authority: None, path: path.to_owned(), query: query.to_owned() }
}

/// `host` or `host:port` without user information, which a server must not accept (RFC 9110, section 4.2.4).
#[must_use]
pub fn authority(text: &[u8]) -> Option<(String, Option<String>)> {
    let text = std::str::from_utf8(text).ok()?;
    let (host, rest) = if text.starts_with('[') {
        let (literal, rest) = text.split_once(']')?;
        if !is_ip_literal(&literal[1..]) {
            return None;
        }
        (format!("{literal}]"), rest)
    } else {
        let end = find(text.as_bytes(), b":").unwrap_or(text.len());
        if !is_reg_name(&text.as_bytes()[..end]) {
            return None;
        }
        (text[..end].to_owned(), &text[end..])
    };
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        // `port = *DIGIT`: none at all is the default one.
        Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            match digits.trim_start_matches('0').parse::<u64>() {
                Err(_) if digits.bytes().all(|byte| byte == b'0') => Some("0".to_owned()),
                // Without zeros in front, which Ruby takes for octal.
                Ok(number) if number <= 65535 => Some(number.to_string()),
                _ => return None,
            }
        }
        _ => return None,
    };
    // `:80` names nothing.
    if host.is_empty() && rest.starts_with(':') { None } else { Some((host, port)) }
}

fn is_reg_name(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        rest = match first {
            b'%' if tail.len() >= 2 && tail[..2].iter().all(u8::is_ascii_hexdigit) => &tail[2..],
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => {
                tail
            }
            _ if first.is_ascii_alphanumeric() => tail,
            _ => return false,
        };
    }
    true
}

fn is_ip_literal(text: &str) -> bool {
    is_ip_future(text.as_bytes()) || is_ipv6(text.as_bytes())
}

fn is_ip_future(text: &[u8]) -> bool {
    let Some((b'v' | b'V', rest)) = text.split_first() else { return false };
    let Some(dot) = find(rest, b".") else { return false };
    let (version, tail) = (&rest[..dot], &rest[dot + 1..]);
    !version.is_empty()
        && version.iter().all(u8::is_ascii_hexdigit)
        && !tail.is_empty()
        && tail.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&byte))
}

fn is_ipv6(text: &[u8]) -> bool {
    let halves = split(text, b"::");
    match halves.as_slice() {
        [whole] => groups(whole, true) == Some(8),
        [left, right] => {
            let left = if left.is_empty() { Some(0) } else { groups(left, false) };
            let right = if right.is_empty() { Some(0) } else { groups(right, true) };
            matches!((left, right), (Some(left), Some(right)) if left + right <= 7)
        }
        _ => false,
    }
}

/// How many groups of 16 bits stand here; the last two may be an IPv4 address.
fn groups(text: &[u8], may_end_in_ipv4: bool) -> Option<usize> {
    let parts = split(text, b":");
    let last = parts.len() - 1;
    let mut count = 0;
    for (index, part) in parts.iter().enumerate() {
        if index == last && may_end_in_ipv4 && is_ipv4(part) {
            count += 2;
        } else if (1..=4).contains(&part.len()) && part.iter().all(u8::is_ascii_hexdigit) {
            count += 1;
        } else {
            return None;
        }
    }
    Some(count)
}

fn is_ipv4(text: &[u8]) -> bool {
    let parts = split(text, b".");
    parts.len() == 4
        && parts.iter().all(|part| {
            let Ok(digits) = std::str::from_utf8(part) else { return false };
            digits.bytes().all(|byte| byte.is_ascii_digit())
                && digits.parse::<u8>().is_ok_and(|number| number.to_string() == digits)
        })
}
