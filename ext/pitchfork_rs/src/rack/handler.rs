//! One request, from its first byte to the last of its response.

use std::sync::{Arc, Mutex, PoisonError};

use magnus::prelude::*;
use magnus::value::BoxValue;
use magnus::{Error, IntoValue, RHash, RModule, Ruby, Value};
use pitchfork_core::http::{BodyDecoder, DateCache, EnvScratch, Framing, Head, RequestFacts, error_response};
use pitchfork_core::sys::clock;

use super::body::{Body, Failure};
use super::connection::{Arrival, Buffer, Connection};
use super::exchange::{Exchange, Fate};
use super::settings::Settings;
use super::{call, env};
use crate::process::clockwork;
use crate::ruby_api::input::Input;

/// What became of a connection.
pub enum Served {
    /// The application was not asked: nothing came, or nothing that could be served.
    Unheard,
    /// The application was called.
    Called {
        /// With this environment.
        env: RHash,
        /// And this body, which is to be ended when nobody may want it any more.
        body: Arc<Mutex<Body>>,
    },
}

/// Everything needed to serve one connection after another. Its buffers are reused.
pub struct Handler {
    app: BoxValue<Value>,
    template: BoxValue<RHash>,
    /// What each environment holds whatever the request says.
    overrides: BoxValue<RHash>,
    logger: BoxValue<Value>,
    asterisk: bool,
    settings: Settings,
    buffer: Buffer,
    head: Head,
    scratch: EnvScratch,
    out: Vec<u8>,
    date: DateCache,
}

impl Handler {
    /// A handler for `app`.
    pub fn new(ruby: &Ruby, app: Value, logger: Value, settings: Settings) -> Result<Self, Error> {
        let environment: RModule = call::module(ruby)?.const_get("Environment")?;
        let compatibility: RModule = call::module(ruby)?.const_get("Compatibility")?;
        let parser: RModule = call::module(ruby)?.const_get("HttpParser")?;
        let template: RHash = environment.funcall("template", (logger,))?;
        Ok(Self {
            app: BoxValue::new(app),
            template: BoxValue::new(template),
            overrides: BoxValue::new(parser.const_get("DEFAULTS")?),
            logger: BoxValue::new(logger),
            asterisk: compatibility.funcall("asterisk_in_path_info?", ())?,
            settings,
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
        let deadline = clock::monotonic() + self.settings.header_timeout;
        let limits = &self.settings.limits;
        match connection.read_head(ruby, &mut self.buffer, &mut self.head, limits, deadline)? {
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
            Ok(body) => Arc::new(Mutex::new(body)),
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
        if self.settings.check_client && connection.is_abandoned() {
            return Ok(Served::Unheard);
        }
        let env = self.call(ruby, connection, &body, begin)?;
        Ok(Served::Called { env, body })
    }

    /// What there is of the body. One whose length only its end tells is read to the end if it is kept, since
    /// applications rely on `CONTENT_LENGTH`.
    fn receive_body(&mut self, ruby: &Ruby, connection: &Connection) -> Result<Body, Failure> {
        let framing = self.head.framing();
        let behind = &self.buffer.filled()[self.head.len()..];
        let early = if framing == Framing::None { &[] } else { behind };
        let decoder = BodyDecoder::new(framing, &self.settings.limits);
        let socket = Arc::clone(&connection.socket);
        let mut body = Body::new(socket, decoder, early, self.head.expect_continue(), self.settings)?;
        if framing == Framing::Chunked && self.settings.rewindable {
            body.fill(ruby, u64::MAX)?;
        }
        Ok(body)
    }

    fn call(
        &mut self,
        ruby: &Ruby,
        connection: &Connection,
        body: &Arc<Mutex<Body>>,
        begin: &mut dyn FnMut(&Ruby, RHash, &str) -> Result<(), Error>,
    ) -> Result<RHash, Error> {
        let framing = self.head.framing();
        let length = match framing {
            Framing::Length(length) => Some(length),
            Framing::Chunked if self.settings.rewindable => {
                body.lock().unwrap_or_else(PoisonError::into_inner).size(ruby).ok()
            }
            _ => None,
        };
        let given = (framing != Framing::None).then(|| Arc::clone(body));
        let input = if self.settings.rewindable { Input::Kept(given) } else { Input::Passing(given) };
        let input = input.into_value_with(ruby);
        let bytes = self.buffer.filled();
        let request = env::Request { head: &self.head, bytes, peer: connection.peer, length };
        let env = env::build(ruby, *self.template, request, input, self.asterisk, &mut self.scratch)?;
        if !self.overrides.is_empty() {
            env.update(*self.overrides)?;
        }
        let facts = RequestFacts { head: self.head.is_head(), version: self.head.version() };
        begin(ruby, env, self.head.path(bytes))?;

        clockwork::start();
        let leftover = if framing == Framing::None { &bytes[self.head.len()..] } else { &[] };
        let mut exchange = Exchange {
            connection,
            request: facts,
            body,
            has_body: framing != Framing::None,
            leftover,
            env,
            logger: *self.logger,
            settings: &self.settings,
            date: &mut self.date,
        };
        let ended = exchange.run(ruby, *self.app, &mut self.out)?;
        if ended.fate == Fate::Kept {
            let unread = body.try_lock().map_or(true, |body| body.is_unread());
            connection.finish(ruby, unread)?;
        }
        exchange.conclude(ruby, &ended)?;
        Ok(env)
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
