//! The request target: its form, and where its parts lie.

use super::host::Authority;
use super::reject::Reject;
use super::span::Span;

/// The forms of a request target that are served (RFC 9112, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// `/path?query`
    #[default]
    Origin,
    /// `http://host/path?query`, as proxies are asked
    Absolute,
    /// `*`, of `OPTIONS` only
    Asterisk,
}

/// A target's parts, as spans of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Parts {
    pub(super) form: Form,
    /// Of absolute-form; empty otherwise.
    pub(super) authority: Span,
    /// Empty only in an absolute-form that has none.
    pub(super) path: Span,
    /// Without its question mark; empty also when there is none.
    pub(super) query: Span,
    /// From the path to the end of the query: all but scheme, authority and fragment.
    pub(super) path_and_query: Span,
}

impl Parts {
    pub(super) const fn shifted(self, offset: usize) -> Self {
        Self {
            form: self.form,
            authority: self.authority.shifted(offset),
            path: self.path.shifted(offset),
            query: self.query.shifted(offset),
            path_and_query: self.path_and_query.shifted(offset),
        }
    }
}

/// Takes a target apart. It contains no control bytes and no space: that was seen to earlier.
pub(super) fn split(method: &[u8], target: &[u8]) -> Result<Parts, Reject> {
    // Its target is an authority, whatever it looks like.
    if method == b"CONNECT" {
        return Err(Reject::Tunnel);
    }
    if str::from_utf8(target).is_err() {
        return Err(Reject::TargetEncoding);
    }
    // A client has no business sending its fragment, but some do, and it is none of the server's.
    let end = position(target, |byte| byte == b'#').unwrap_or(target.len());
    let target = &target[..end];
    if target == b"*" {
        return asterisk(method);
    }
    let (form, authority) = if target.starts_with(b"/") {
        (Form::Origin, Span::default())
    } else if let Some(start) = scheme_length(target) {
        let rest = &target[start..];
        let length = position(rest, |byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        (Form::Absolute, Span::new(start, start + length))
    } else if Authority::parse(target).is_some_and(|authority| authority.port.is_some()) {
        return Err(Reject::Tunnel);
    } else {
        return Err(Reject::Target);
    };
    if form == Form::Absolute && Authority::parse(authority.bytes(target)).is_none() {
        return Err(Reject::Host);
    }
    let start = authority.end;
    let question = position(&target[start..], |byte| byte == b'?').map(|offset| start + offset);
    let path_end = question.unwrap_or(end);
    Ok(Parts {
        form,
        authority,
        path: Span::new(start, path_end),
        query: Span::new(question.map_or(end, |at| at + 1), end),
        path_and_query: Span::new(start, end),
    })
}

fn asterisk(method: &[u8]) -> Result<Parts, Reject> {
    if method != b"OPTIONS" {
        return Err(Reject::Target);
    }
    let star = Span::new(0, 1);
    Ok(Parts { form: Form::Asterisk, path: star, path_and_query: star, ..Parts::default() })
}

/// The length of `http://` or `https://` at the start of the target.
///
/// Other schemes are not served: the server is no gateway, and no origin of theirs.
fn scheme_length(target: &[u8]) -> Option<usize> {
    [b"http://".as_slice(), b"https://"]
        .into_iter()
        .find(|scheme| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
        .map(<[u8]>::len)
}

fn position(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    super::bytes::find(bytes, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, target: &str, form: Form, expected: [&str; 4]) {
        let parts = split(method.as_bytes(), target.as_bytes()).expect(target);
        assert_eq!(parts.form, form, "{target}");
        let found = [parts.authority, parts.path, parts.query, parts.path_and_query];
        assert_eq!(found.map(|span| span.text(target.as_bytes())), expected, "{target}");
    }

    #[test]
    fn each_form_is_taken_apart() {
        use Form::{Absolute, Asterisk, Origin};
        for (target, form, expected) in [
            ("/", Origin, ["", "/", "", "/"]),
            ("/a/b?c=d", Origin, ["", "/a/b", "c=d", "/a/b?c=d"]),
            ("/a?", Origin, ["", "/a", "", "/a?"]),
            ("/a?b?c", Origin, ["", "/a", "b?c", "/a?b?c"]),
            ("/a#b?c", Origin, ["", "/a", "", "/a"]),
            ("/a?b#c?d#e", Origin, ["", "/a", "b", "/a?b"]),
            ("//host/a", Origin, ["", "//host/a", "", "//host/a"]),
            ("/http://x", Origin, ["", "/http://x", "", "/http://x"]),
            ("/\u{e9}", Origin, ["", "/\u{e9}", "", "/\u{e9}"]),
            ("http://h/a?b", Absolute, ["h", "/a", "b", "/a?b"]),
            ("HTTPS://h:1/", Absolute, ["h:1", "/", "", "/"]),
            ("http://h", Absolute, ["h", "", "", ""]),
            ("http://h?q", Absolute, ["h", "", "q", "?q"]),
            ("http://h#f", Absolute, ["h", "", "", ""]),
            ("http://[::1]:80/a", Absolute, ["[::1]:80", "/a", "", "/a"]),
        ] {
            check("GET", target, form, expected);
        }
        check("OPTIONS", "*", Asterisk, ["", "*", "", "*"]);
    }

    #[test]
    fn what_is_not_served_is_refused() {
        for (method, target, reject) in [
            ("CONNECT", "example.com:443", Reject::Tunnel),
            ("CONNECT", "/", Reject::Tunnel),
            ("GET", "example.com:443", Reject::Tunnel),
            ("GET", "[::1]:443", Reject::Tunnel),
            ("GET", "example.com", Reject::Target),
            ("GET", "*", Reject::Target),
            ("OPTIONS", "*a", Reject::Target),
            ("GET", "?a", Reject::Target),
            ("GET", "#a", Reject::Target),
            ("GET", "ftp://h/", Reject::Target),
            ("GET", "mailto:a", Reject::Target),
            ("GET", "http:/a", Reject::Target),
            ("GET", "http:///a", Reject::Host),
            ("GET", "http://u@h/", Reject::Host),
            ("GET", "http://h\\a/", Reject::Host),
            ("GET", "http://h:x/", Reject::Host),
        ] {
            let result = split(method.as_bytes(), target.as_bytes());
            assert_eq!(result, Err(reject), "{method} {target}");
        }
        assert_eq!(split(b"GET", b"/\xff"), Err(Reject::TargetEncoding));
        // Also in the part that is dropped: what is refused must not depend on what is used.
        assert_eq!(split(b"GET", b"/#\xff"), Err(Reject::TargetEncoding));
    }
}
