//! `PitchforkRs::EarlyHints`: the `rack.early_hints` of a request.

use std::sync::{Arc, Mutex, PoisonError};

use magnus::prelude::*;
use magnus::{Error, RModule, Ruby, Value, method};
use pitchfork_core::children::Millis;
use pitchfork_core::http::EarlyHints as Hints;
use socket2::Socket;

use crate::rack::connection::push;
use crate::rack::response::each_field;
use crate::rack::sender::{Failure, Sender};
use crate::vm::string;

/// Sends `103 Early Hints` when called, until the response itself begins.
#[magnus::wrap(class = "PitchforkRs::EarlyHints", free_immediately, size)]
pub struct EarlyHints {
    socket: Arc<Mutex<Option<Arc<Socket>>>>,
    write_timeout: Millis,
}

/// Ends the time for early hints.
pub struct EarlyHintsEnd(Arc<Mutex<Option<Arc<Socket>>>>);

impl EarlyHintsEnd {
    /// From now on hints are ignored.
    pub fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl EarlyHints {
    /// For the request on this connection; and what ends it.
    pub fn new(socket: Arc<Socket>, write_timeout: Millis) -> (Self, EarlyHintsEnd) {
        let socket = Arc::new(Mutex::new(Some(socket)));
        (Self { socket: Arc::clone(&socket), write_timeout }, EarlyHintsEnd(socket))
    }

    /// `call(headers)`.
    fn call(ruby: &Ruby, rb_self: &Self, headers: Value) -> Result<(), Error> {
        let mut out = Vec::new();
        let mut hints = Hints::new(&mut out);
        each_field(headers, |name, value| {
            string::with_both(name, value, |name, value| {
                let _ = hints.field(name, value);
            });
            Ok(())
        })?;
        if !hints.finish() {
            return Ok(());
        }
        // The lock must not be held while a slow client is waited for.
        let socket = rb_self.socket.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(socket) = socket else { return Ok(()) };
        let sent = Sender::new(Arc::clone(&socket), out, rb_self.write_timeout).flush(ruby);
        push(&socket);
        match sent {
            Err(Failure::Interrupted(error)) => Err(error),
            Ok(()) | Err(Failure::Gone) => Ok(()),
        }
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("EarlyHints", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("call", method!(EarlyHints::call, 1))?;
    Ok(())
}
