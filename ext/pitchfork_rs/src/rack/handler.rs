//! One request, from its first byte to the last of its response.

use std::sync::{Arc, Mutex, PoisonError};

use magnus::prelude::*;
use magnus::value::BoxValue;
use magnus::{Error, IntoValue, RHash, RModule, Ruby, Value};
use pitchfork_core::children::Millis;
use pitchfork_core::http::{BodyDecoder, DateCache, EnvScratch, Framing, RequestFacts, error_response};
use pitchfork_core::reactor::{Content, Rest, Then};
use pitchfork_core::sys::clock;

use super::body::{Body, Failure};
use super::buffer::{Intake, Spares};
use super::connection::{Arrival, BodyArrival, Connection};
use super::exchange::{Ended, Exchange, Fate};
use super::sender::{self, Sender};
use super::settings::Settings;
use super::{call, env};
use crate::process::clockwork;
use crate::ruby_api::input::Input;

/// What has not come yet of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Its head, or some of it.
    Head,
    /// Some of its body.
    Body,
    /// More of its body than is read here before the application is called.
    LargeBody,
}

/// What became of a connection.
pub enum Served {
    /// No whole request has come yet.
    Waiting(Missing),
    /// The application was not asked: nothing came, or nothing that could be served. The connection is over.
    Unheard,
    /// The application was called.
    Called {
        /// What it wants to be done about the response.
        ended: Ended,
        /// The request's body, which is to be ended when nobody may want it any more.
        body: Arc<Mutex<Body>>,
        /// Whether the connection goes on. If not it is over, or the application's.
        persists: bool,
    },
}

/// Sends a connection to others, who go on with it: with these bytes that have come and were not consumed, and after so
/// many requests. Gives the content back if there is nobody.
pub type PassOn<'h> = dyn Fn(&Connection, Vec<u8>, u32, Content) -> Result<(), Content> + 'h;

/// What the process around a handler has to say about a request.
pub struct Host<'h> {
    /// Called when the request is complete enough for the application.
    pub begin: &'h mut dyn FnMut(&Ruby, RHash, &str) -> Result<(), Error>,
    /// Whether the connection may go on, asked when the response begins.
    pub may_persist: &'h dyn Fn() -> bool,
    /// Whether what has not come of a request is waited for.
    pub waits: bool,
    /// The way to those who wait for clients.
    pub pass_on: &'h PassOn<'h>,
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
    spares: Spares,
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
            spares: Spares::default(),
            scratch: EnvScratch::default(),
            out: Vec::new(),
            date: DateCache::default(),
        })
    }

    /// Adds a key to each environment.
    pub fn set_env(&self, key: &str, value: Value) -> Result<(), Error> {
        self.template.aset(key, value)
    }

    /// Limits and switches.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Serves one request of a connection.
    ///
    /// An error is one that goes its own way: an exit, a signal, a throw. Whatever is the application's or the
    /// client's fault ends here.
    pub fn serve(&mut self, ruby: &Ruby, connection: &mut Connection, host: &mut Host<'_>) -> Result<Served, Error> {
        let mut intake = connection.intake.take().unwrap_or_else(|| self.spares.take());
        let served = self.serve_from(ruby, connection, &mut intake, host)?;
        let goes_on = matches!(served, Served::Waiting(_) | Served::Called { persists: true, .. });
        if goes_on && !intake.buffer.is_empty() {
            connection.intake = Some(intake);
        } else {
            self.spares.put(intake);
        }
        Ok(served)
    }

    fn serve_from(
        &mut self,
        ruby: &Ruby,
        connection: &mut Connection,
        intake: &mut Intake,
        host: &mut Host<'_>,
    ) -> Result<Served, Error> {
        let limits = &self.settings.limits;
        let arrival = if host.waits {
            clockwork::await_client();
            let since = if connection.since == 0 { clock::monotonic() } else { connection.since };
            connection.await_head(ruby, intake, limits, since + self.settings.header_timeout)?
        } else {
            connection.read_head(intake, limits)
        };
        match arrival {
            Arrival::Request => {}
            Arrival::Waiting => return Ok(Served::Waiting(Missing::Head)),
            Arrival::Nothing | Arrival::Cut => return Ok(Served::Unheard),
            Arrival::Late => {
                return self.refuse(ruby, connection, host, 408, "the request head did not arrive in time");
            }
            Arrival::Refused(reject) => {
                return self.refuse(ruby, connection, host, reject.status(), &reject.to_string());
            }
        }
        if !host.waits && self.wants_body_first(connection, intake) {
            match connection.read_body(intake, limits) {
                BodyArrival::Whole => {}
                BodyArrival::Waiting => return Ok(Served::Waiting(Missing::Body)),
                BodyArrival::Large => return Ok(Served::Waiting(Missing::LargeBody)),
                BodyArrival::Cut => return Ok(Served::Unheard),
            }
        }
        let (body, taken) = match self.receive_body(ruby, connection, intake) {
            Ok((body, taken)) => (Arc::new(Mutex::new(body)), taken),
            Err(Failure::Interrupted(error)) => return Err(error),
            Err(Failure::Gone) => return Ok(Served::Unheard),
            Err(failure) => {
                let status = match &failure {
                    Failure::Late => 408,
                    Failure::Refused(reject) => reject.status(),
                    _ => 500,
                };
                return self.refuse(ruby, connection, host, status, &failure.to_string());
            }
        };
        if self.settings.check_client && connection.is_abandoned() {
            return Ok(Served::Unheard);
        }
        let consumed = intake.head.len() + taken;
        let ended = self.call(ruby, connection, intake, &body, consumed, host)?;
        let persists = ended.fate == Fate::Persists;
        if persists {
            connection.served = connection.served.saturating_add(1);
            intake.buffer.consume(consumed);
            intake.head.clear();
            // Nothing of it is on its way any more, so nobody can be waiting in it.
            intake.buffer.append(&body.lock().unwrap_or_else(PoisonError::into_inner).take_surplus());
        }
        Ok(Served::Called { ended, body, persists })
    }

    /// Whether the application is called only when the body is there. A client that waits to be told to send it is told
    /// when the application asks for it.
    fn wants_body_first(&self, connection: &Connection, intake: &Intake) -> bool {
        let Intake { buffer, head } = intake;
        let waits_for_us = head.expect_continue() && buffer.filled().len() == head.len();
        self.settings.rewindable && connection.body.is_none() && head.framing() != Framing::None && !waits_for_us
    }

    /// What there is of the body, and how much of the bytes behind the head that is. One whose length only its end
    /// tells is read to the end if it is kept, since applications rely on `CONTENT_LENGTH`.
    fn receive_body(
        &mut self,
        ruby: &Ruby,
        connection: &mut Connection,
        intake: &mut Intake,
    ) -> Result<(Body, usize), Failure> {
        let Intake { buffer, head } = intake;
        if let Some(body) = connection.body.take() {
            return Ok((Body::full(Arc::clone(&connection.socket), body, self.settings)?, 0));
        }
        let framing = head.framing();
        let behind = &buffer.filled()[head.len()..];
        let early = if framing == Framing::None { &[] } else { behind };
        let decoder = BodyDecoder::new(framing, &self.settings.limits);
        let socket = Arc::clone(&connection.socket);
        let (mut body, taken) = Body::new(socket, decoder, early, head.expect_continue(), self.settings)?;
        if framing == Framing::Chunked && self.settings.rewindable {
            body.fill(ruby, u64::MAX)?;
            buffer.append(&body.take_surplus());
        }
        Ok((body, taken))
    }

    fn call(
        &mut self,
        ruby: &Ruby,
        connection: &Connection,
        intake: &Intake,
        body: &Arc<Mutex<Body>>,
        consumed: usize,
        host: &mut Host<'_>,
    ) -> Result<Ended, Error> {
        let Intake { buffer, head } = intake;
        let framing = head.framing();
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
        let bytes = buffer.filled();
        let request = env::Request { head, bytes, peer: connection.peer, length };
        let env = env::build(ruby, *self.template, request, input, self.asterisk, &mut self.scratch)?;
        if !self.overrides.is_empty() {
            env.update(*self.overrides)?;
        }
        let is_last = connection.served + 1 >= self.settings.keepalive_requests;
        let persistent = head.persists() && self.settings.keepalive_timeout > 0 && !is_last;
        let facts = RequestFacts { head: head.is_head(), version: head.version(), persistent };
        (host.begin)(ruby, env, head.path(bytes))?;

        clockwork::start();
        let mut exchange = Exchange {
            connection,
            request: facts,
            may_persist: host.may_persist,
            leave_up_to: if connection.is_corked || host.waits { 0 } else { self.settings.response_buffer },
            body,
            has_body: framing != Framing::None,
            leftover: &bytes[consumed..],
            env,
            logger: *self.logger,
            settings: &self.settings,
            date: &mut self.date,
        };
        let mut ended = exchange.run(ruby, *self.app, &mut self.out)?;
        if let Some(rest) = ended.rest.take() {
            let mut behind = Vec::new();
            let mut then = Then::Close;
            if ended.fate == Fate::Persists {
                // Nothing of the body is on its way any more, so nobody can be waiting in it.
                behind.extend_from_slice(&bytes[consumed..]);
                behind.extend_from_slice(&body.lock().unwrap_or_else(PoisonError::into_inner).take_surplus());
                then = Then::KeepAlive;
            }
            let served = connection.served.saturating_add(1);
            match (host.pass_on)(connection, behind, served, Content::Response { rest, then }) {
                Ok(()) => ended.fate = Fate::PassedOn,
                Err(Content::Response { rest, .. }) => {
                    let timeout = self.settings.write_timeout;
                    Self::send_rest(ruby, connection, &rest, timeout, &mut ended.fate)?;
                }
                Err(_) => ended.fate = Fate::Closes,
            }
        }
        match ended.fate {
            Fate::Persists => connection.push(),
            Fate::Closes => {
                let unread = !bytes[consumed..].is_empty() || body.try_lock().map_or(true, |body| body.is_unread());
                Self::finish(ruby, connection, host, unread)?;
            }
            Fate::PassedOn | Fate::Given => {}
        }
        Ok(ended)
    }

    /// Waits for a client to take the rest of a response, where nobody else does.
    fn send_rest(
        ruby: &Ruby,
        connection: &Connection,
        rest: &Rest,
        timeout: Millis,
        fate: &mut Fate,
    ) -> Result<(), Error> {
        let mut sender = Sender::new(Arc::clone(&connection.socket), Vec::new(), timeout);
        match sender.send_rest(ruby, rest) {
            Ok(()) => Ok(()),
            Err(sender::Failure::Gone) => {
                *fate = Fate::Closes;
                Ok(())
            }
            Err(sender::Failure::Interrupted(error)) => Err(error),
        }
    }

    /// Ends a connection. Whether the client takes notice is waited for elsewhere, if there is anybody.
    fn finish(ruby: &Ruby, connection: &Connection, host: &Host<'_>, unread: bool) -> Result<(), Error> {
        if unread {
            // The client sees the end of the response at once, whenever the others come to it.
            connection.part();
            if (host.pass_on)(connection, Vec::new(), connection.served, Content::Close).is_ok() {
                return Ok(());
            }
        }
        connection.finish(ruby, unread)
    }

    /// Answers a client whose request the application shall not see.
    fn refuse(
        &mut self,
        ruby: &Ruby,
        connection: &Connection,
        host: &Host<'_>,
        status: u16,
        why: &str,
    ) -> Result<Served, Error> {
        self.out.clear();
        error_response(&mut self.out, status, self.date.get(clock::unix_seconds()));
        connection.write_once(&self.out);
        let peer = connection.peer.map_or_else(|| "a Unix socket".into(), |peer| peer.to_string());
        let line = format!("answered {status} to {peer}: {why}");
        let _ = self.logger.funcall::<_, _, Value>("debug", (line,));
        Self::finish(ruby, connection, host, true)?;
        Ok(Served::Unheard)
    }

    /// Answers 500 to a client whose request met a bug of this server.
    pub fn apologise(&mut self, connection: &Connection) {
        self.out.clear();
        error_response(&mut self.out, 500, self.date.get(clock::unix_seconds()));
        connection.write_once(&self.out);
    }
}
