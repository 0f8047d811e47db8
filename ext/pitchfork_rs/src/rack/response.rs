//! What the application returned, written to the client.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use magnus::r_hash::ForEach;
use magnus::value::ReprValue;
use magnus::{Error, Module, RArray, RClass, RHash, RString, Ruby, TryConvert, Value};
use pitchfork_core::http::{BodySize, Ending, Outcome, RequestFacts, ResponseHead, date};

use super::body::Body;
use super::hijack::ruby_socket;
use super::names;
use super::sender::{Failure, Sender};
use super::settings::Settings;
use super::transmit::{send_each, send_file, send_stream, send_strings};
use crate::vm::{gvl, string};

/// Why a response was not written to its end.
#[derive(Debug)]
pub enum WriteError {
    /// The client has gone away.
    Gone,
    /// The body raised, or something that goes its own way came in.
    Raised(Error),
    /// The application returned something that is no Rack response.
    Malformed(String),
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Gone => Self::Gone,
            Failure::Interrupted(error) => Self::Raised(error),
        }
    }
}

impl From<Error> for WriteError {
    fn from(error: Error) -> Self {
        Self::Raised(error)
    }
}

const HIJACK: &str = "rack.hijack";

/// What came of writing a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of it was sent, and the connection goes on.
    Persists,
    /// All of it was sent, or as much as there was, and the connection is to be closed.
    Closes,
    /// Its head was sent; the connection is the application's now.
    HandedOver,
}

/// Where a response goes, and what it depends on.
pub struct Outgoing<'o> {
    /// The way to the client.
    pub sender: &'o mut Sender,
    /// The request.
    pub request: RequestFacts,
    /// The `Date` field.
    pub date: &'o [u8; date::DATE_LENGTH],
    /// The server's logger.
    pub logger: Value,
    /// The request body, if there is one, for a streaming body to read.
    pub reader: Option<&'o Arc<Mutex<Body>>>,
    /// What came behind a request without a body.
    pub leftover: &'o [u8],
    /// Limits and switches.
    pub settings: &'o Settings,
}

/// How a body is sent.
enum Kind {
    Strings(RArray),
    File(File, u64),
    Each,
    Call,
    Takeover,
}

/// The three parts of a Rack response.
pub struct Response {
    status: u16,
    headers: Value,
    body: Value,
}

impl Response {
    /// Takes a Rack response apart; says what is wrong if it is none.
    pub fn take_apart(ruby: &Ruby, returned: Value) -> Result<Self, WriteError> {
        let malformed = |what: &str| WriteError::Malformed(format!("{what}, but the app returned {}", brief(returned)));
        let triple = RArray::try_convert(returned).ok().filter(|triple| triple.len() == 3);
        let triple = triple.ok_or_else(|| malformed("wanted an Array of status, headers and body"))?;
        let (status, headers, body): (Value, Value, Value) = (triple.entry(0)?, triple.entry(1)?, triple.entry(2)?);
        let status = match status.funcall::<_, _, i64>(*names::TO_I, ()) {
            Ok(status @ 100..=999) => u16::try_from(status).unwrap_or(500),
            Ok(_) => return Err(malformed("wanted a status from 100 to 999")),
            Err(error) if error.is_kind_of(ruby.exception_no_method_error()) => {
                return Err(malformed("wanted an Integer as status"));
            }
            Err(error) => return Err(error.into()),
        };
        // Rack 2 asks no more of them.
        if !headers.is_nil() && !headers.respond_to(*names::EACH, false)? {
            return Err(malformed("wanted headers that respond to each"));
        }
        Ok(Self { status, headers, body })
    }

    /// The headers, as the application returned them.
    pub fn headers(&self) -> Value {
        self.headers
    }

    /// The status, as it is sent.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Writes it. The body is not closed here.
    pub fn write(&self, ruby: &Ruby, out: &mut Outgoing<'_>) -> Result<Written, WriteError> {
        // Whoever takes the connection sends a body, for which a response to HEAD has no room.
        let taken = !out.request.head && self.takes_connection();
        let kind = if taken { Kind::Takeover } else { self.kind(ruby)? };
        let size = match &kind {
            Kind::Strings(strings) => BodySize::Known(total(*strings)?),
            Kind::File(_, length) => BodySize::Known(*length),
            Kind::Each => BodySize::Unknown,
            Kind::Call | Kind::Takeover => BodySize::Stream,
        };
        let mut head = ResponseHead::new(out.sender.pending(), self.status, out.date);
        let logger = out.logger;
        each_field(self.headers, |name, value| {
            write_field(&mut head, name, value, logger);
            Ok(())
        })?;
        let Ending { framing, persists } = head.finish(out.request, size);
        let is_whole = match kind {
            Kind::Strings(strings) => send_strings(ruby, out, strings, framing),
            Kind::File(file, length) => send_file(ruby, out, &file, length, framing),
            Kind::Each => send_each(ruby, out, self.body, framing),
            Kind::Call => send_stream(ruby, out, self.body, framing),
            Kind::Takeover => return self.hand_over(ruby, out),
        }?;
        Ok(if is_whole && persists { Written::Persists } else { Written::Closes })
    }

    /// Whether a header asks for the connection (partial hijacking).
    fn takes_connection(&self) -> bool {
        RHash::from_value(self.headers).and_then(|headers| headers.get(HIJACK)).is_some_and(|taker| !taker.is_nil())
    }

    fn hand_over(&self, ruby: &Ruby, out: &mut Outgoing<'_>) -> Result<Written, WriteError> {
        out.sender.leave_up_to(0);
        out.sender.flush(ruby)?;
        let io = ruby_socket(ruby, out.sender.socket(), out.leftover)?;
        if let Some(taker) = RHash::from_value(self.headers).and_then(|headers| headers.get(HIJACK)) {
            taker.funcall::<_, _, Value>("call", (io,))?;
        }
        Ok(Written::HandedOver)
    }

    fn kind(&self, ruby: &Ruby) -> Result<Kind, WriteError> {
        if let Some(array) = RArray::from_value(self.body) {
            return Ok(Kind::Strings(array));
        }
        if let Some((file, length)) = self.file(ruby)? {
            return Ok(Kind::File(file, length));
        }
        if self.body.respond_to(*names::TO_ARY, false)? {
            return Ok(Kind::Strings(self.body.funcall(*names::TO_ARY, ())?));
        }
        if self.body.respond_to(*names::EACH, false)? {
            return Ok(Kind::Each);
        }
        if self.body.respond_to(*names::CALL, false)? {
            return Ok(Kind::Call);
        }
        let what = format!("wanted a body that responds to each or call, but the app returned {}", brief(self.body));
        Err(WriteError::Malformed(what))
    }

    /// The file that the body offers, if it can be opened; the body itself knows what to do otherwise.
    fn file(&self, ruby: &Ruby) -> Result<Option<(File, u64)>, WriteError> {
        if !self.body.respond_to(*names::TO_PATH, false)? {
            return Ok(None);
        }
        let path: Value = self.body.funcall(*names::TO_PATH, ())?;
        if path.is_nil() {
            return Ok(None);
        }
        let path = match RString::from_value(path) {
            Some(path) => path,
            // Rack wants a String; but Rails' send_file hands on what it was given, and that is often a Pathname.
            None => ruby.class_object().const_get::<_, RClass>("File")?.funcall("path", (path,))?,
        };
        let path = string::with_bytes(path, |path| PathBuf::from(OsStr::from_bytes(path)));
        let opened = gvl::wait(ruby, || {
            // A FIFO would keep this process, deaf to signals, until somebody opens its other end.
            let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path).ok()?;
            let length = file.metadata().ok().filter(Metadata::is_file)?.len();
            Some((file, length))
        })?;
        Ok(opened.flatten())
    }
}

/// Closes the body of whatever the application returned, if it has one that wants it.
pub fn close_body(returned: Value) -> Result<(), Error> {
    let Some(body) = RArray::from_value(returned).and_then(|triple| triple.entry::<Value>(2).ok()) else {
        return Ok(());
    };
    if body.respond_to(*names::CLOSE, false)? {
        body.funcall::<_, _, Value>(*names::CLOSE, ())?;
    }
    Ok(())
}

/// A value as a log line can bear it.
pub fn brief(value: Value) -> String {
    let mut text = value.inspect();
    if let Some((end, _)) = text.char_indices().nth(200) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn total(strings: RArray) -> Result<u64, WriteError> {
    let mut total = 0;
    for at in 0..strings.len() {
        total += part(strings, at)?.len() as u64;
    }
    Ok(total)
}

pub fn part(strings: RArray, at: usize) -> Result<RString, WriteError> {
    let at = isize::try_from(at).unwrap_or(isize::MAX);
    let part: Value = strings.entry(at)?;
    RString::from_value(part)
        .ok_or_else(|| WriteError::Malformed(format!("wanted Strings in the body, but it holds {}", brief(part))))
}

/// Calls `write` with each response field: once for each element of a value that is an Array.
pub fn each_field(headers: Value, mut write: impl FnMut(RString, RString) -> Result<(), Error>) -> Result<(), Error> {
    let pairs = match RHash::from_value(headers) {
        Some(hash) => hash,
        None if headers.is_nil() => return Ok(()),
        None => collect(headers)?,
    };
    pairs.foreach(|name: Value, value: Value| {
        let name = text(name)?;
        match RArray::from_value(value) {
            Some(values) => {
                for at in 0..values.len() {
                    let value: Value = values.entry(isize::try_from(at).unwrap_or(isize::MAX))?;
                    write(name, text(value)?)?;
                }
            }
            // What is for the server is no text.
            None if is_for_server(name) => {}
            None => write(name, text(value)?)?,
        }
        Ok(ForEach::Continue)
    })
}

fn is_for_server(name: RString) -> bool {
    string::with_bytes(name, |name| name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"rack.")))
}

fn collect(headers: Value) -> Result<RHash, Error> {
    let pairs = Ruby::get_with(headers).hash_new();
    let each: Value = headers.funcall("to_enum", ("each",))?;
    let list: RArray = each.funcall("to_a", ())?;
    for pair in list {
        let (name, value) = <(Value, Value)>::try_convert(pair)?;
        pairs.aset(name, value)?;
    }
    Ok(pairs)
}

fn text(value: Value) -> Result<RString, Error> {
    match RString::from_value(value) {
        Some(text) => Ok(text),
        None => value.funcall("to_s", ()),
    }
}

fn write_field(head: &mut ResponseHead<'_>, name: RString, value: RString, logger: Value) {
    let outcome = string::with_both(name, value, |name, value| head.field(name, value));
    if let Outcome::Dropped(reason) = outcome {
        let line = format!("response field {} dropped: {reason}", brief(name.as_value()));
        let _ = logger.funcall::<_, _, Value>("error", (line,));
    }
}
