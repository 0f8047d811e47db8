//! Authorities: what `Host` and an absolute-form target name.

/// A host and perhaps a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The host; an IPv6 address keeps its brackets.
    pub name: &'a str,
    /// The port's digits without leading zeros (Ruby's `Integer("080")` fails), if one was given.
    pub port: Option<&'a str>,
}

impl<'a> Authority<'a> {
    /// What a request without a host is taken to mean.
    pub const LOCALHOST: Authority<'static> = Authority { name: "localhost", port: None };

    /// Reads `uri-host [":" port]` (RFC 9110, section 7.2).
    ///
    /// The host may not be empty: an `http` URI without one is invalid (section 4.2.1). User information
    /// is refused, as section 4.2.4 advises: it serves to disguise the host.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let (name, rest) = if text.starts_with('[') {
            let literal = text.split_once(']')?.0;
            if !is_ip_literal(&literal[1..]) {
                return None;
            }
            text.split_at(literal.len() + 1)
        } else {
            let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
            if !is_reg_name(name.as_bytes()) {
                return None;
            }
            (name, rest)
        };
        let port = match rest.strip_prefix(':') {
            Some(digits) => parse_port(digits)?,
            None if rest.is_empty() => None,
            None => return None,
        };
        Some(Self { name, port })
    }
}

/// `port = *DIGIT` (RFC 3986, section 3.2.3): an empty one is valid and means the default.
///
/// The outer `Option` tells whether it is a port at all.
#[allow(clippy::option_option)]
fn parse_port(digits: &str) -> Option<Option<&str>> {
    if digits.is_empty() {
        return Some(None);
    }
    // `u16::from_str` would accept a plus sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Some(Some(&digits[digits.len() - 1..]));
    }
    significant.parse::<u16>().ok()?;
    Some(Some(significant))
}

/// The inside of `"[" ( IPv6address / IPvFuture ) "]"` (RFC 3986, section 3.2.2).
fn is_ip_literal(text: &str) -> bool {
    match text.strip_prefix(['v', 'V']) {
        Some(future) => future.split_once('.').is_some_and(|(version, address)| {
            !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !address.is_empty()
                && address.bytes().all(|byte| byte == b':' || is_unreserved_or_sub_delim(byte))
        }),
        None => text.parse::<std::net::Ipv6Addr>().is_ok(),
    }
}

/// `reg-name` of RFC 3986, section 3.2.2, but not empty. An IPv4 address is one too.
///
/// Its `unreserved` contains `_`, which host names in DNS may not have but upstream names that
/// proxies send do.
fn is_reg_name(mut bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        return false;
    }
    loop {
        bytes = match bytes {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest,
            [byte, rest @ ..] if is_unreserved_or_sub_delim(*byte) => rest,
            _ => return false,
        }
    }
}

/// `unreserved / sub-delims` of RFC 3986, section 2.
const fn is_unreserved_or_sub_delim(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_ports_are_told_apart() {
        for (text, name, port) in [
            ("example.com", "example.com", None),
            ("example.com:8080", "example.com", Some("8080")),
            ("example.com:", "example.com", None),
            ("app_backend:3000", "app_backend", Some("3000")),
            ("127.0.0.1:80", "127.0.0.1", Some("80")),
            ("a%20b", "a%20b", None),
            ("a!$&'()*+,;=b", "a!$&'()*+,;=b", None),
            ("[::1]", "[::1]", None),
            ("[::ffff:10.0.0.1]:65535", "[::ffff:10.0.0.1]", Some("65535")),
            ("[v1.fe:80]:1", "[v1.fe:80]", Some("1")),
            ("h:00080", "h", Some("80")),
            ("h:000", "h", Some("0")),
        ] {
            let expected = Authority { name, port };
            assert_eq!(Authority::parse(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_authority_is_refused() {
        for text in [
            "",
            ":80",
            "user@host",
            "user:secret@host",
            "host:80:80",
            "host:http",
            "host:65536",
            "host:+80",
            "host: 80",
            "host:99999999999999999999999",
            "a b",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "a,b c",
            "a%2",
            "a%zz",
            "[::1",
            "::1",
            "[]",
            "[::1]80",
            "[::1%25eth0]",
            "[127.0.0.1]",
            "[v.a]",
            "[vz.a]",
            "[v1.]",
            "[v1]",
            "h\u{e9}",
        ] {
            assert_eq!(Authority::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Authority::parse(b"h\xff"), None);
    }
}
