//! The fields of a head, and how they become keys of a Rack environment.

use std::borrow::Cow;

use super::span::Span;

/// The fields that mean something to the server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Host,
    Expect,
    Version,
    Cookie,
    Connection,
    ContentType,
    ContentLength,
    TransferEncoding,
    Other,
}

impl Kind {
    /// Which one a name means when `_` counts as `-`, as it does once names are CGI keys.
    fn of(name: &[u8]) -> Self {
        let is = |key: &[u8]| name.iter().map(|&byte| cgi_byte(byte)).eq(key.iter().copied());
        match name.len() {
            4 if is(b"HOST") => Self::Host,
            6 if is(b"EXPECT") => Self::Expect,
            6 if is(b"COOKIE") => Self::Cookie,
            7 if is(b"VERSION") => Self::Version,
            10 if is(b"CONNECTION") => Self::Connection,
            12 if is(b"CONTENT_TYPE") => Self::ContentType,
            14 if is(b"CONTENT_LENGTH") => Self::ContentLength,
            17 if is(b"TRANSFER_ENCODING") => Self::TransferEncoding,
            _ => Self::Other,
        }
    }

    /// Whether such a field gets an `HTTP_` key.
    ///
    /// CGI gives two of them keys without that prefix, and `HTTP_VERSION` is taken: by the protocol.
    const fn has_http_key(self) -> bool {
        !matches!(self, Self::Version | Self::ContentType | Self::ContentLength)
    }

    /// What joins repeated fields: RFC 9110, section 5.3, and for cookies RFC 6265, section 5.4,
    /// whose values may contain commas.
    const fn separator(self) -> &'static [u8] {
        match self {
            Self::Cookie => b"; ",
            _ => b", ",
        }
    }
}

/// One field line.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: Span,
    pub(super) value: Span,
    pub(super) kind: Kind,
    /// Whether the name contains an underscore.
    pub(super) underscore: bool,
    /// Of the CGI key, so that names are mostly told apart without looking at them.
    hash: u32,
}

impl Field {
    pub(super) fn new(name: Span, value: Span, buf: &[u8]) -> Self {
        let text = name.bytes(buf);
        Self {
            name,
            value,
            kind: Kind::of(text),
            underscore: text.contains(&b'_'),
            // FNV-1a. Collisions cost a comparison, and there are never many fields to collide.
            hash: text
                .iter()
                .fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(cgi_byte(byte))).wrapping_mul(0x0100_0193)),
        }
    }

    fn has_same_key(&self, other: &Self, buf: &[u8]) -> bool {
        self.hash == other.hash && {
            let (ours, theirs) = (self.name.bytes(buf), other.name.bytes(buf));
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(&our, &their)| cgi_byte(our) == cgi_byte(their))
        }
    }
}

/// A byte of a field name as it stands in the CGI key (RFC 3875, section 4.1.18).
const fn cgi_byte(byte: u8) -> u8 {
    match byte {
        b'-' => b'_',
        _ => byte.to_ascii_uppercase(),
    }
}

/// Buffers that building an environment needs, kept for the next request.
#[derive(Debug, Default)]
pub struct EnvScratch {
    key: Vec<u8>,
    value: Vec<u8>,
}

/// The fields that make up the value of the key that `fields[0]` leads to.
///
/// A name with `_` collides with the one with `-`, and a proxy that strips or sets `X-Forwarded-For` does
/// not know that `X_Forwarded_For` becomes the same key. So the spelling with `-` wins, wherever it stands.
fn group<'a>(fields: &'a [Field], buf: &'a [u8]) -> impl Iterator<Item = &'a Field> {
    let same_key = move |field: &&Field| field.has_same_key(&fields[0], buf);
    let dashed = fields.iter().filter(same_key).any(|field| !field.underscore);
    fields.iter().filter(same_key).filter(move |field| !(dashed && field.underscore))
}

/// Calls `f` with name, key and value of each distinct `HTTP_` key.
///
/// `host` replaces the value of `Host`.
pub(super) fn for_each_env_field(
    fields: &[Field],
    host: Option<&[u8]>,
    buf: &[u8],
    scratch: &mut EnvScratch,
    mut f: impl FnMut(&[u8], &[u8], &[u8]),
) {
    let EnvScratch { key, value } = scratch;
    for (index, field) in fields.iter().enumerate() {
        let led = || fields[..index].iter().any(|earlier| earlier.has_same_key(field, buf));
        if !field.kind.has_http_key() || (field.kind == Kind::Host && host.is_some()) || led() {
            continue;
        }
        let mut members = group(&fields[index..], buf);
        let Some(first) = members.next() else {
            continue;
        };
        key.clear();
        key.extend_from_slice(b"HTTP_");
        key.extend(first.name.bytes(buf).iter().map(|&byte| cgi_byte(byte)));
        let single = first.value.bytes(buf);
        if let Some(second) = members.next() {
            value.clear();
            value.extend_from_slice(single);
            for member in std::iter::once(second).chain(members) {
                value.extend_from_slice(field.kind.separator());
                value.extend_from_slice(member.value.bytes(buf));
            }
            f(first.name.bytes(buf), key, value);
        } else {
            f(first.name.bytes(buf), key, single);
        }
    }
    if let Some(host) = host {
        f(b"Host", b"HTTP_HOST", host);
    }
}

/// The value of `Content-Type`, by the rules that hold for the other fields.
pub(super) fn content_type<'a>(fields: &'a [Field], buf: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let index = fields.iter().position(|field| field.kind == Kind::ContentType)?;
    let mut members = group(&fields[index..], buf);
    let first = members.next()?.value.bytes(buf);
    Some(members.fold(Cow::Borrowed(first), |mut joined, member| {
        joined.to_mut().extend_from_slice(Kind::ContentType.separator());
        joined.to_mut().extend_from_slice(member.value.bytes(buf));
        joined
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_known_in_any_case_and_with_underscores() {
        for (name, kind) in [
            ("Host", Kind::Host),
            ("EXPECT", Kind::Expect),
            ("cookie", Kind::Cookie),
            ("Version", Kind::Version),
            ("CONNECTION", Kind::Connection),
            ("content_TYPE", Kind::ContentType),
            ("Content_Length", Kind::ContentLength),
            ("transfer-Encoding", Kind::TransferEncoding),
            ("X-Host", Kind::Other),
            ("Hos", Kind::Other),
            ("Content~Type", Kind::Other),
            ("Content\rType", Kind::Other),
        ] {
            assert_eq!(Kind::of(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn names_with_the_same_hash_are_still_told_apart() {
        let buf = b"Accept Reject";
        let accept = Field::new(Span::new(0, 6), Span::default(), buf);
        let mut reject = Field::new(Span::new(7, 13), Span::default(), buf);
        reject.hash = accept.hash;
        assert!(!accept.has_same_key(&reject, buf));
    }
}
