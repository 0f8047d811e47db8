//! One request, from its first byte to the last of its response.

use std::sync::{Arc, Mutex, PoisonError};

use magnus::prelude::*;
use magnus::value::BoxValue;
use magnus::{Error, IntoValue, RHash, RModule, Ruby, Value};
use pitchfork_core::children::Millis;
use pitchfork_core::http::{BodyDecoder, DateCache, EnvScratch, Framing, Head, Limits, RequestFacts, error_response};
use pitchfork_core::sys::clock;

use super::body::{Body, Failure};
use super::connection::{Arrival, Buffer, Connection};
use super::response::{Response, WriteError, close_body};
use super::sender::Sender;
use super::{call, env};
use crate::process::clockwork;
use crate::ruby_api::input::Input;

/// How long a client may take to send its request head.
const HEADER_TIMEOUT: Millis = 10_000;

/// What became of a connection.
pub enum Served {
    /// The application was not asked: nothing came, or nothing that could be served.
    Unheard,
    /// The application was called with this environment.
    Called(RHash),
}

/// Everything needed to serve one connection after another. Its buffers are reused.
pub struct Handler {
    app: BoxValue<Value>,
    template: BoxValue<RHash>,
    logger: BoxValue<Value>,
    asterisk: bool,
    body_memory: u64,
    limits: Limits,
    buffer: Buffer,
    head: Head,
    scratch: EnvScratch,
    out: Vec<u8>,
    date: DateCache,
}

impl Handler {
    /// A handler for `app`. Bodies up to `body_memory` bytes stay in memory.
    pub fn new(ruby: &Ruby, app: Value, logger: Value, body_memory: u64) -> Result<Self, Error> {
        let environment: RModule = call::module(ruby)?.const_get("Environment")?;
        let template: RHash = environment.funcall("template", (logger,))?;
        Ok(Self {
            app: BoxValue::new(app),
            template: BoxValue::new(template),
            logger: BoxValue::new(logger),
            asterisk: environment.funcall("asterisk_in_path_info?", ())?,
            body_memory,
            limits: Limits::default(),
            buffer: Buffer::default(),
            head: Head::default(),
            scratch: EnvScratch::default(),
            out: Vec::new(),
            date: DateCache::default(),
        })
    }

    /// Adds a key to each environment.
    pub fn set_env(&self, key: &str, value: Value) -> Result<(), Error> {
        self.template.aset(key, value)
    }

    /// Serves one connection. `begin` is called when the request is complete enough for the application.
    ///
    /// An error is one that goes its own way: an exit, a signal, a throw. Whatever is the application's or the
    /// client's fault ends here.
    pub fn serve(
        &mut self,
        ruby: &Ruby,
        connection: &Connection,
        begin: &mut dyn FnMut(&Ruby, RHash, &str) -> Result<(), Error>,
    ) -> Result<Served, Error> {
        clockwork::await_client();
        let deadline = clock::monotonic() + HEADER_TIMEOUT;
        match connection.read_head(ruby, &mut self.buffer, &mut self.head, &self.limits, deadline)? {
            Arrival::Request => {}
            Arrival::Nothing | Arrival::Cut => return Ok(Served::Unheard),
            Arrival::Late => {
                return self.refuse(ruby, connection, 408, "the request head did not arrive in time");
            }
            Arrival::Refused(reject) => {
                return self.refuse(ruby, connection, reject.status(), &reject.to_string());
            }
        }
        let body = match self.receive_body(ruby, connection) {
            Ok(body) => body,
            Err(Failure::Interrupted(error)) => return Err(error),
            Err(Failure::Gone) => return Ok(Served::Unheard),
            Err(failure) => {
                let status = match &failure {
                    Failure::Late => 408,
                    Failure::Refused(reject) => reject.status(),
                    _ => 500,
                };
                return self.refuse(ruby, connection, status, &failure.to_string());
            }
        };
        let called = self.call(ruby, connection, body.as_ref(), begin);
        let unread = body.is_some_and(|body| {
            let mut body = body.lock().unwrap_or_else(PoisonError::into_inner);
            body.detach();
            body.is_unread()
        });
        clockwork::await_client();
        connection.finish(ruby, unread)?;
        called.map(Served::Called)
    }

    /// What there is of a body. One whose length only its end tells is read to the end, since applications rely on
    /// `CONTENT_LENGTH`.
    fn receive_body(&mut self, ruby: &Ruby, connection: &Connection) -> Result<Option<Arc<Mutex<Body>>>, Failure> {
        let framing = self.head.framing();
        if framing == Framing::None {
            return Ok(None);
        }
        let early = &self.buffer.filled()[self.head.len()..];
        let decoder = BodyDecoder::new(framing, &self.limits);
        let socket = Arc::clone(&connection.socket);
        let mut body = Body::new(socket, decoder, early, self.head.expect_continue(), self.body_memory)?;
        if framing == Framing::Chunked {
            body.fill(ruby, u64::MAX)?;
        }
        Ok(Some(Arc::new(Mutex::new(body))))
    }

    fn call(
        &mut self,
        ruby: &Ruby,
        connection: &Connection,
        body: Option<&Arc<Mutex<Body>>>,
        begin: &mut dyn FnMut(&Ruby, RHash, &str) -> Result<(), Error>,
    ) -> Result<RHash, Error> {
        let length = match (self.head.framing(), body) {
            (Framing::Length(length), _) => Some(length),
            (Framing::Chunked, Some(body)) => body.lock().unwrap_or_else(PoisonError::into_inner).size(ruby).ok(),
            _ => None,
        };
        let input = Input::new(body.cloned()).into_value_with(ruby);
        let bytes = self.buffer.filled();
        let request = env::Request { head: &self.head, bytes, peer: connection.peer, length };
        let env = env::build(ruby, *self.template, request, input, self.asterisk, &mut self.scratch)?;
        let facts = RequestFacts { head: self.head.is_head(), version: self.head.version() };
        begin(ruby, env, self.head.path(bytes))?;

        clockwork::start();
        let mut sender = Sender::new(Arc::clone(&connection.socket), std::mem::take(&mut self.out));
        let returned = self.app.funcall::<_, _, Value>("call", (env,));
        let written = match returned {
            Ok(returned) => self.write(ruby, &mut sender, facts, returned),
            Err(error) => Err(WriteError::Raised(error)),
        };
        let refused = body.and_then(|body| body.lock().unwrap_or_else(PoisonError::into_inner).refused());
        let settled = self.settle(ruby, &mut sender, written, refused);
        self.out = sender.into_memory();
        clockwork::stop();
        settled.map(|()| env)
    }

    fn write(
        &mut self,
        ruby: &Ruby,
        sender: &mut Sender,
        facts: RequestFacts,
        returned: Value,
    ) -> Result<(), WriteError> {
        let date = self.date.get(clock::unix_seconds());
        let written = Response::take_apart(ruby, returned)
            .and_then(|response| response.write(ruby, sender, facts, date, *self.logger));
        // The body is closed on each way out, and only here.
        match close_body(returned) {
            Err(error) if call::is_application_error(ruby, &error) => self.log_app_error(ruby, &error),
            Err(error) => return Err(error.into()),
            Ok(()) => {}
        }
        written
    }

    /// Tells whoever has to know how a response failed.
    fn settle(
        &mut self,
        ruby: &Ruby,
        sender: &mut Sender,
        written: Result<(), WriteError>,
        refused: Option<u16>,
    ) -> Result<(), Error> {
        let status = match written {
            Ok(()) | Err(WriteError::Gone) => return Ok(()),
            Err(WriteError::Malformed(what)) => {
                let error = Error::new(ruby.exception_type_error(), what);
                self.log_app_error(ruby, &error);
                500
            }
            Err(WriteError::Raised(error)) if call::is_client_shutdown(ruby, &error) => match refused {
                Some(status) => status,
                None => return Ok(()),
            },
            Err(WriteError::Raised(error)) if call::is_application_error(ruby, &error) => match refused {
                Some(status) if error.is_kind_of(call::parser_error(ruby)?) => status,
                _ => {
                    self.log_app_error(ruby, &error);
                    500
                }
            },
            Err(WriteError::Raised(error)) => return Err(error),
        };
        if !sender.has_begun() {
            sender.pending().clear();
            error_response(sender.pending(), status, self.date.get(clock::unix_seconds()));
            let _ = sender.flush(ruby);
        }
        Ok(())
    }

    fn log_app_error(&self, ruby: &Ruby, error: &Error) {
        call::log_error(ruby, *self.logger, "app error", error);
    }

    /// Answers a client whose request the application shall not see.
    fn refuse(&mut self, ruby: &Ruby, connection: &Connection, status: u16, why: &str) -> Result<Served, Error> {
        self.out.clear();
        error_response(&mut self.out, status, self.date.get(clock::unix_seconds()));
        connection.write_once(&self.out);
        let peer = connection.peer.map_or_else(|| "a Unix socket".into(), |peer| peer.to_string());
        let line = format!("answered {status} to {peer}: {why}");
        let _ = self.logger.funcall::<_, _, Value>("debug", (line,));
        connection.finish(ruby, true)?;
        Ok(Served::Unheard)
    }

    /// Answers 500 to a client whose request met a bug of this server.
    pub fn apologise(&mut self, connection: &Connection) {
        self.out.clear();
        error_response(&mut self.out, 500, self.date.get(clock::unix_seconds()));
        connection.write_once(&self.out);
    }
}
