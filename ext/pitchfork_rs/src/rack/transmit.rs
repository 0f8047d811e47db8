//! Sending a body, each kind in its way. Each function tells whether the client got all that the head promised.

use std::fs::File;
use std::sync::{Arc, Mutex};

use magnus::value::ReprValue;
use magnus::{Error, RArray, RString, Ruby, Value};
use pitchfork_core::http::BodyFraming;

use super::body::Body;
use super::call;
use super::framed::Framed;
use super::names;
use super::response::{Outgoing, WriteError, brief, part};
use super::sender::Failure;
use crate::ruby_api::input;
use crate::ruby_api::stream::{self, Ends, Stream};
use crate::vm::gvl;

pub fn send_strings(
    ruby: &Ruby,
    out: &mut Outgoing<'_>,
    strings: RArray,
    framing: BodyFraming,
) -> Result<bool, WriteError> {
    let mut framed = Framed::new(framing);
    if !framed.is_bodyless() {
        for at in 0..strings.len() {
            framed.send(ruby, out.sender, part(strings, at)?)?;
        }
    }
    Ok(framed.finish(ruby, out.sender, out.logger)?)
}

pub fn send_file(
    ruby: &Ruby,
    out: &mut Outgoing<'_>,
    file: &File,
    length: u64,
    framing: BodyFraming,
) -> Result<bool, WriteError> {
    let mut framed = Framed::new(framing);
    if !framed.is_bodyless() {
        let sent = out.sender.send_file(ruby, file, length.min(framed.left()))?;
        framed.advance(sent);
    }
    Ok(framed.finish(ruby, out.sender, out.logger)?)
}

/// Iterates a body. The block may be kept by the body and called at any later time, so it owns what it uses, and
/// finds nothing there once this function has returned.
pub fn send_each(ruby: &Ruby, out: &mut Outgoing<'_>, body: Value, framing: BodyFraming) -> Result<bool, WriteError> {
    // What a body yields may be all there is for a while, so it is not left to anybody who waits for its end.
    out.sender.leave_up_to(0);
    if framing == BodyFraming::None {
        out.sender.flush(ruby)?;
        return Ok(true);
    }
    let shared = Arc::new(Mutex::new(Some((out.sender.take(), Framed::new(framing)))));
    let inner = Arc::clone(&shared);
    let block = ruby.proc_from_fn(move |ruby: &Ruby, args: &[Value], _| {
        let part = args.first().copied().unwrap_or_else(|| ruby.qnil().as_value());
        let Some(part) = RString::from_value(part) else {
            let what = format!("wanted Strings in the body, but it yielded {}", brief(part));
            return Err(Error::new(ruby.exception_type_error(), what));
        };
        // Nobody waits for the lock: the block of a body is not for two threads at once.
        let mut inner = inner.try_lock().map_err(|_| closed(ruby))?;
        let (sender, framed) = inner.as_mut().ok_or_else(|| closed(ruby))?;
        // Nor is it kept back here.
        match framed.send(ruby, sender, part).and_then(|()| sender.flush(ruby)) {
            Ok(()) => Ok(()),
            Err(Failure::Gone) => Err(Error::new(call::client_shutdown(ruby)?, "the client has gone away")),
            Err(Failure::Interrupted(error)) => Err(error),
        }
    });
    let iterated = body.funcall_with_block::<_, _, Value>(*names::EACH, (), block);
    let taken = gvl::lock(ruby, &shared)?.take();
    let Some((sender, mut framed)) = taken else { return Err(WriteError::Gone) };
    *out.sender = sender;
    match iterated {
        Ok(_) => Ok(framed.finish(ruby, out.sender, out.logger)?),
        Err(error) if framed.is_gone() && call::is_client_shutdown(ruby, &error) => Err(WriteError::Gone),
        Err(error) => Err(error.into()),
    }
}

fn closed(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_io_error(), "this response is already over")
}

/// Calls a streaming body. The response ends when it returns, or earlier if it says so.
pub fn send_stream(ruby: &Ruby, out: &mut Outgoing<'_>, body: Value, framing: BodyFraming) -> Result<bool, WriteError> {
    out.sender.leave_up_to(0);
    out.sender.flush(ruby)?;
    let framed = Framed::new(framing);
    if framed.is_bodyless() {
        return Ok(true);
    }
    let reader = if let Some(reader) = out.reader {
        Arc::clone(reader)
    } else {
        let raw = Body::raw(Arc::clone(out.sender.socket()), out.leftover, *out.settings);
        Arc::new(Mutex::new(raw.map_err(|failure| input::raise(ruby, failure))?))
    };
    let sender = out.sender.take();
    let ends = Ends { sender, framed, reader, write_closed: false, read_closed: false };
    let shared = Arc::new(Mutex::new(Some(ends)));
    let stream = ruby.obj_wrap(Stream::new(Arc::clone(&shared), out.logger));
    let called = body.funcall::<_, _, Value>(*names::CALL, (stream,));
    let Some(mut ends) = stream::take_back(ruby, &shared)? else { return Err(WriteError::Gone) };
    let finished = match &called {
        Ok(_) if !ends.write_closed => ends.close_write(ruby, out.logger),
        _ => Ok(true),
    };
    let gone = ends.framed.is_gone();
    *out.sender = ends.sender;
    match called {
        Ok(_) => Ok(finished?),
        Err(error) if gone && call::is_client_shutdown(ruby, &error) => Err(WriteError::Gone),
        Err(error) => Err(error.into()),
    }
}
