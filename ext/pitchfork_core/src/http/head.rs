//! The head of a request.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use super::bytes::trim_ows;
use super::fields::{self, EnvScratch, Field, Kind};
use super::framing::{Framing, FramingFields};
use super::host::Authority;
use super::limits::Limits;
use super::persistence::ConnectionOptions;
use super::reject::Reject;
use super::scan::Scanner;
use super::span::Span;
use super::target::{self, Form, Parts};

/// The versions that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
}

impl Version {
    /// As it stands in `SERVER_PROTOCOL`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }
}

/// Whether a head is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Its end has not come yet; nothing in it is wrong so far.
    Partial,
    /// It is complete, and everything can be asked of it.
    Complete,
}

/// A request's head, as ranges of the buffer it was read into.
///
/// The accessors that take a buffer want the one that was parsed, from the same start; it may have grown.
/// With another they return nonsense, but do not panic. Before [`Progress::Complete`] what they return
/// means nothing.
#[derive(Debug, Default)]
pub struct Head {
    scanner: Scanner,
    complete: bool,
    len: usize,
    version: Version,
    /// Whether the method is `HEAD`.
    bodyless: bool,
    target: Parts,
    fields: Vec<Field>,
    host: Option<Span>,
    expect_continue: bool,
    connection: ConnectionOptions,
    framing: Framing,
}

impl Head {
    /// Forgets everything but the memory, for the next request.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = Self { fields, ..Self::default() };
    }

    /// Looks at what came since the last call. `buf` is everything that came since the request began.
    ///
    /// Bytes behind the head are left alone: see [`Self::len`].
    pub fn parse(&mut self, buf: &[u8], limits: &Limits) -> Result<Progress, Reject> {
        if self.complete {
            return Ok(Progress::Complete);
        }
        let Some(len) = self.scanner.scan(buf, limits)? else {
            return Ok(Progress::Partial);
        };
        let buf = &buf[..len];
        self.tokenise(buf)?;
        self.interpret(buf, limits)?;
        self.len = len;
        self.complete = true;
        Ok(Progress::Complete)
    }

    /// Has httparse split the head into fields.
    fn tokenise(&mut self, buf: &[u8]) -> Result<(), Reject> {
        /// As many fields as the default limits allow fit on the stack.
        const USUAL: usize = 128;
        let count = self.scanner.fields;
        if count <= USUAL {
            self.tokenise_into(buf, &mut [const { MaybeUninit::uninit() }; USUAL])
        } else {
            self.tokenise_into(buf, &mut vec![MaybeUninit::uninit(); count])
        }
    }

    fn tokenise_into<'b>(
        &mut self,
        buf: &'b [u8],
        space: &mut [MaybeUninit<httparse::Header<'b>>],
    ) -> Result<(), Reject> {
        // It would skip any number of empty lines; the scanner skipped the one that may be there.
        let request_line = self.scanner.method.start;
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(&buf[request_line..], space);
        match parsed {
            // Two opinions about where the head ends are one too many.
            Ok(httparse::Status::Complete(len)) if request_line + len == buf.len() => {}
            Ok(_) => return Err(Reject::MalformedHead),
            Err(error) => return Err(reject(error)),
        }
        self.version = match request.version {
            Some(0) => Version::Http10,
            _ => Version::Http11,
        };
        self.fields.clear();
        self.fields.extend(request.headers.iter().map(|header| {
            let name = Span::of(header.name.as_bytes(), buf);
            Field::new(name, Span::of(header.value, buf), buf)
        }));
        Ok(())
    }

    /// Decides what the head means.
    fn interpret(&mut self, buf: &[u8], limits: &Limits) -> Result<(), Reject> {
        let Scanner { method, target, .. } = self.scanner;
        self.target = target::split(method.bytes(buf), target.bytes(buf))?.shifted(target.start);
        self.bodyless = method.bytes(buf) == b"HEAD";

        let mut framing = FramingFields::default();
        let mut expectation = Expectation::default();
        self.connection = ConnectionOptions::default();
        self.host = None;
        for field in &self.fields {
            let value = field.value.bytes(buf);
            match field.kind {
                // Proxies that do not know these as the fields they become would let them through.
                Kind::ContentLength | Kind::TransferEncoding if field.underscore => {
                    return Err(Reject::FramingUnderscore);
                }
                Kind::ContentLength => framing.content_length(value),
                Kind::TransferEncoding => framing.transfer_encoding(value),
                Kind::Expect => expectation.field(value),
                Kind::Connection => self.connection.field(value),
                Kind::Host if self.host.replace(field.value).is_some() => {
                    return Err(Reject::HostRepeated);
                }
                _ => {}
            }
        }
        self.check_host(buf)?;
        self.framing = framing.decide(self.version, limits)?;
        if expectation.other {
            return Err(Reject::Expectation);
        }
        // To a 1.0 client the expectation is ignored (RFC 9110, section 10.1.1), and where there is no
        // body there is nothing to go on with.
        self.expect_continue = expectation.go_on
            && self.version == Version::Http11
            && !matches!(self.framing, Framing::None | Framing::Length(0));
        Ok(())
    }

    /// RFC 9112, section 3.2. The target's authority does not excuse a bad `Host`.
    fn check_host(&self, buf: &[u8]) -> Result<(), Reject> {
        match self.host.map(|span| span.bytes(buf)) {
            None if self.version == Version::Http11 => Err(Reject::HostMissing),
            None | Some([]) => Ok(()),
            Some(host) if Authority::parse(host).is_some() => Ok(()),
            Some(_) => Err(Reject::Host),
        }
    }

    /// The bytes the head takes, that is, where the body begins.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a head is never empty
    pub fn len(&self) -> usize {
        self.len
    }

    /// The method, in the letter case in which it came: methods are case-sensitive.
    #[must_use]
    pub fn method<'a>(&self, buf: &'a [u8]) -> &'a str {
        self.scanner.method.text(buf)
    }

    /// Whether the response must have no body because the method is `HEAD`.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.bodyless
    }

    /// The version of the request.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The form of the target.
    #[must_use]
    pub fn form(&self) -> Form {
        self.target.form
    }

    /// The target just as it came, for logs.
    #[must_use]
    pub fn raw_target<'a>(&self, buf: &'a [u8]) -> &'a str {
        self.scanner.target.text(buf)
    }

    /// Path and query: what Ruby servers call `REQUEST_URI`, whatever the target's form.
    ///
    /// Owned only for an absolute-form that has a query and no path.
    #[must_use]
    pub fn request_uri<'a>(&self, buf: &'a [u8]) -> Cow<'a, str> {
        let target = self.target.path_and_query.text(buf);
        match target.bytes().next() {
            None => Cow::Borrowed(self.path(buf)),
            Some(b'?') => Cow::Owned(format!("/{target}")),
            Some(_) => Cow::Borrowed(target),
        }
    }

    /// The path, not decoded. `*` in asterisk-form, `/` for an absolute-form without one.
    #[must_use]
    pub fn path<'a>(&self, buf: &'a [u8]) -> &'a str {
        match (self.target.form, self.target.path.text(buf)) {
            (Form::Absolute, "") => "/",
            (_, path) => path,
        }
    }

    /// The query, not decoded, without its question mark. Empty also if there is none.
    #[must_use]
    pub fn query<'a>(&self, buf: &'a [u8]) -> &'a str {
        self.target.query.text(buf)
    }

    /// Whom the client believes to speak to: the target's authority, else `Host`, else `localhost`.
    #[must_use]
    pub fn authority<'a>(&self, buf: &'a [u8]) -> Authority<'a> {
        self.target_authority(buf)
            .or_else(|| Some(self.host?.bytes(buf)))
            .and_then(Authority::parse)
            .unwrap_or(Authority::LOCALHOST)
    }

    fn target_authority<'a>(&self, buf: &'a [u8]) -> Option<&'a [u8]> {
        (self.target.form == Form::Absolute).then(|| self.target.authority.bytes(buf))
    }

    /// Names and values as they came, in their order, values trimmed.
    pub fn fields<'a>(&'a self, buf: &'a [u8]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.fields.iter().map(move |field| (field.name.bytes(buf), field.value.bytes(buf)))
    }

    /// The value of `Content-Type`. Owned only if there are several, which are joined.
    #[must_use]
    pub fn content_type<'a>(&'a self, buf: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        fields::content_type(&self.fields, buf)
    }

    /// Whether the client waits for `100 Continue` before it sends its body.
    #[must_use]
    pub fn expect_continue(&self) -> bool {
        self.expect_continue
    }

    /// Whether the client wants the connection to go on after the response.
    #[must_use]
    pub fn persists(&self) -> bool {
        self.connection.persists(self.version)
    }

    /// How the body ends.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Calls `f` with each `HTTP_` key of the environment: the name as it came, the key, the value.
    ///
    /// Repeated fields are joined. Names with `_` come only if their spelling with `-` is absent. `Version`
    /// is left out, and so are `Content-Type` and `Content-Length`, which have keys of their own.
    /// `HTTP_HOST` is the target's authority if it has one (RFC 9112, section 3.2.2).
    pub fn for_each_env_field(&self, buf: &[u8], scratch: &mut EnvScratch, f: impl FnMut(&[u8], &[u8], &[u8])) {
        fields::for_each_env_field(&self.fields, self.target_authority(buf), buf, scratch, f);
    }
}

/// What `Expect` asks for (RFC 9110, section 10.1.1).
#[derive(Debug, Default)]
struct Expectation {
    go_on: bool,
    other: bool,
}

impl Expectation {
    fn field(&mut self, value: &[u8]) {
        let members = value.split(|&byte| byte == b',').map(trim_ows);
        for member in members.filter(|member| !member.is_empty()) {
            if member.eq_ignore_ascii_case(b"100-continue") {
                self.go_on = true;
            } else {
                self.other = true;
            }
        }
    }
}

fn reject(error: httparse::Error) -> Reject {
    match error {
        httparse::Error::HeaderName => Reject::FieldName,
        httparse::Error::HeaderValue => Reject::FieldValue,
        // The scanner found nothing wrong in method and target, so what is left is the encoding.
        httparse::Error::Token => Reject::TargetEncoding,
        httparse::Error::Version => Reject::VersionMalformed,
        httparse::Error::TooManyHeaders => Reject::TooManyFields,
        _ => Reject::MalformedHead,
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
