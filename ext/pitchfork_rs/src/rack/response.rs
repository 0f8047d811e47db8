//! What the application returned, written to the client.

use std::sync::{Arc, Mutex, PoisonError};

use magnus::r_hash::ForEach;
use magnus::value::ReprValue;
use magnus::{Error, RArray, RHash, RString, Ruby, TryConvert, Value};
use pitchfork_core::http::chunked::{LAST_CHUNK, chunk_header};
use pitchfork_core::http::{BodyFraming, BodySize, Outcome, RequestFacts, ResponseHead, date};

use super::call;
use super::sender::{Failure, Sender};
use crate::vm::string;

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
        let status = match status.funcall::<_, _, i64>("to_i", ()) {
            Ok(status @ 100..=999) => u16::try_from(status).unwrap_or(500),
            Ok(_) => return Err(malformed("wanted a status from 100 to 999")),
            Err(error) if error.is_kind_of(ruby.exception_no_method_error()) => {
                return Err(malformed("wanted an Integer as status"));
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Self { status, headers, body })
    }

    /// Writes it. The body is not closed here.
    pub fn write(
        &self,
        ruby: &Ruby,
        sender: &mut Sender,
        request: RequestFacts,
        date: &[u8; date::DATE_LENGTH],
        logger: Value,
    ) -> Result<(), WriteError> {
        let strings = self.strings()?;
        let size = match &strings {
            Some(strings) => BodySize::Known(total(*strings)?),
            None => BodySize::Unknown,
        };
        let mut head = ResponseHead::new(sender.pending(), self.status, date);
        write_fields(ruby, self.headers, &mut head, logger)?;
        let framing = head.finish(request, size);
        match strings {
            Some(strings) => send_strings(ruby, sender, strings, framing, logger),
            None => send_each(ruby, sender, self.body, framing, logger),
        }
    }

    /// The body, if it is an Array or offers one.
    fn strings(&self) -> Result<Option<RArray>, WriteError> {
        if let Some(array) = RArray::from_value(self.body) {
            return Ok(Some(array));
        }
        if self.body.respond_to("to_ary", false)? {
            return Ok(Some(self.body.funcall("to_ary", ())?));
        }
        if self.body.respond_to("each", false)? {
            return Ok(None);
        }
        let what = format!("wanted a body that responds to each, but the app returned {}", brief(self.body));
        Err(WriteError::Malformed(what))
    }
}

/// Closes the body of whatever the application returned, if it has one that wants it.
pub fn close_body(returned: Value) -> Result<(), Error> {
    let Some(body) = RArray::from_value(returned).and_then(|triple| triple.entry::<Value>(2).ok()) else {
        return Ok(());
    };
    if body.respond_to("close", false)? {
        body.funcall::<_, _, Value>("close", ())?;
    }
    Ok(())
}

/// A value as a log line can bear it.
fn brief(value: Value) -> String {
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

fn part(strings: RArray, at: usize) -> Result<RString, WriteError> {
    let at = isize::try_from(at).unwrap_or(isize::MAX);
    let part: Value = strings.entry(at)?;
    RString::from_value(part)
        .ok_or_else(|| WriteError::Malformed(format!("wanted Strings in the body, but it holds {}", brief(part))))
}

fn write_fields(ruby: &Ruby, headers: Value, head: &mut ResponseHead<'_>, logger: Value) -> Result<(), WriteError> {
    let pairs = match RHash::from_value(headers) {
        Some(hash) => hash,
        None if headers.is_nil() => return Ok(()),
        // Rack 2 asks no more of headers than that they respond to each.
        None => collect(ruby, headers)?,
    };
    pairs.foreach(|name: Value, value: Value| {
        let name = text(name)?;
        match RArray::from_value(value) {
            Some(values) => {
                for at in 0..values.len() {
                    let value: Value = values.entry(isize::try_from(at).unwrap_or(isize::MAX))?;
                    write_field(head, name, text(value)?, logger);
                }
            }
            None => write_field(head, name, text(value)?, logger),
        }
        Ok(ForEach::Continue)
    })?;
    Ok(())
}

fn collect(ruby: &Ruby, headers: Value) -> Result<RHash, Error> {
    let pairs = ruby.hash_new();
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

fn send_strings(
    ruby: &Ruby,
    sender: &mut Sender,
    strings: RArray,
    framing: BodyFraming,
    logger: Value,
) -> Result<(), WriteError> {
    let mut stream = Stream::new(framing);
    for at in 0..strings.len() {
        if stream.is_full() {
            break;
        }
        stream.send(ruby, sender, part(strings, at)?)?;
    }
    stream.finish(ruby, sender, logger)
}

/// Iterates a body. The block may be kept by the body and called at any later time, so it owns what it uses, and
/// finds nothing there once this function has returned.
fn send_each(
    ruby: &Ruby,
    sender: &mut Sender,
    body: Value,
    framing: BodyFraming,
    logger: Value,
) -> Result<(), WriteError> {
    if framing == BodyFraming::None {
        return Ok(sender.flush(ruby)?);
    }
    let shared = Arc::new(Mutex::new(Some((sender.take(), Stream::new(framing)))));
    let inner = Arc::clone(&shared);
    let block = ruby.proc_from_fn(move |ruby: &Ruby, args: &[Value], _| {
        let part = args.first().copied().unwrap_or_else(|| ruby.qnil().as_value());
        let Some(part) = RString::from_value(part) else {
            let what = format!("wanted Strings in the body, but it yielded {}", brief(part));
            return Err(Error::new(ruby.exception_type_error(), what));
        };
        // Nobody waits for the lock: the block of a body is not for two threads at once.
        let mut inner = inner.try_lock().map_err(|_| closed(ruby))?;
        let (sender, stream) = inner.as_mut().ok_or_else(|| closed(ruby))?;
        match stream.send(ruby, sender, part) {
            Ok(()) => Ok(()),
            Err(Failure::Gone) => Err(Error::new(call::client_shutdown(ruby)?, "the client has gone away")),
            Err(Failure::Interrupted(error)) => Err(error),
        }
    });
    let iterated = body.funcall_with_block::<_, _, Value>("each", (), block);
    let taken = shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((back, mut stream)) = taken else { return Err(WriteError::Gone) };
    *sender = back;
    match iterated {
        Ok(_) => stream.finish(ruby, sender, logger),
        Err(error) if stream.gone && call::is_client_shutdown(ruby, &error) => Err(WriteError::Gone),
        Err(error) => Err(error.into()),
    }
}

fn closed(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_io_error(), "this response is already over")
}

/// A body on its way through its framing.
struct Stream {
    framing: BodyFraming,
    left: u64,
    cut: bool,
    gone: bool,
}

impl Stream {
    fn new(framing: BodyFraming) -> Self {
        let left = match framing {
            BodyFraming::None => 0,
            BodyFraming::Length(length) => length,
            BodyFraming::Chunked | BodyFraming::Raw | BodyFraming::UntilClose => u64::MAX,
        };
        Self { framing, left, cut: false, gone: false }
    }

    fn is_full(&self) -> bool {
        self.framing == BodyFraming::None
    }

    fn send(&mut self, ruby: &Ruby, sender: &mut Sender, part: RString) -> Result<(), Failure> {
        let len = part.len() as u64;
        if len == 0 {
            return Ok(());
        }
        let sent = if self.framing == BodyFraming::Chunked {
            sender.pending().extend_from_slice(chunk_header(part.len()).as_bytes());
            sender.send_string(ruby, part, usize::MAX).inspect(|()| sender.pending().extend_from_slice(b"\r\n"))
        } else {
            let most = len.min(self.left);
            self.cut |= most < len;
            self.left -= most;
            sender.send_string(ruby, part, usize::try_from(most).unwrap_or(usize::MAX))
        };
        self.gone |= matches!(sent, Err(Failure::Gone));
        sent
    }

    /// Ends the body, or leaves it without its end where the client has to see that it is not whole.
    fn finish(&mut self, ruby: &Ruby, sender: &mut Sender, logger: Value) -> Result<(), WriteError> {
        if self.framing == BodyFraming::Chunked {
            sender.pending().extend_from_slice(LAST_CHUNK);
        }
        sender.flush(ruby)?;
        if let BodyFraming::Length(length) = self.framing {
            let problem = match (self.cut, self.left) {
                (true, _) => "longer",
                (false, 1..) => "shorter",
                _ => return Ok(()),
            };
            let line = format!("the response body is {problem} than its Content-Length of {length} bytes");
            let _ = logger.funcall::<_, _, Value>("error", (line,));
        }
        Ok(())
    }
}
