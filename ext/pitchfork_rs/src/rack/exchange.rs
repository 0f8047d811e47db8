//! One call of the application: what it may do besides returning, what it returned, and what follows from that.

use std::sync::{Arc, Mutex};

use magnus::prelude::*;
use magnus::{Error, RArray, RHash, Ruby, Value};
use pitchfork_core::http::{DateCache, RequestFacts, Version, error_response};
use pitchfork_core::reactor::Rest;
use pitchfork_core::sys::{clock, process};

use super::body::Body;
use super::call;
use super::connection::Connection;
use super::hijack::{Claim, Use};
use super::keys;
use super::names;
use super::response::{Outgoing, Response, WriteError, Written, close_body};
use super::sender::Sender;
use super::settings::Settings;
use crate::ruby_api::early_hints::{EarlyHints, EarlyHintsEnd};
use crate::ruby_api::hijack::Hijack;
use crate::vm::hash::Filling;

/// A request that is before the application.
pub struct Exchange<'e> {
    /// The connection it came on.
    pub connection: &'e Connection,
    /// Its method and version, as far as they matter for the response, and whether the client wants another one.
    pub request: RequestFacts,
    /// Whether the server wants another one. Asked when the response begins.
    pub may_persist: &'e dyn Fn() -> bool,
    /// How many bytes of the response may be left to others.
    pub leave_up_to: usize,
    /// Its body, which may be empty.
    pub body: &'e Arc<Mutex<Body>>,
    /// Whether there is a body at all, even an empty one.
    pub has_body: bool,
    /// What came behind the request.
    pub leftover: &'e [u8],
    /// Its environment.
    pub env: RHash,
    /// The server's logger.
    pub logger: Value,
    /// Limits and switches.
    pub settings: &'e Settings,
    /// The clock for `Date`.
    pub date: &'e mut DateCache,
}

/// What became of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits for the next request.
    Persists,
    /// It is to be closed.
    Closes,
    /// It is the reactor's, with the rest of the response.
    PassedOn,
    /// It is the application's.
    Given,
}

/// How a call of the application has ended.
pub struct Ended {
    /// What became of the connection.
    pub fate: Fate,
    /// What is left of the response, if the client did not take all of it.
    pub rest: Option<Rest>,
    /// The environment that the application was called with.
    pub env: RHash,
    logger: Value,
    callbacks: RArray,
    account: Account,
}

/// What callbacks get to know.
#[derive(Default)]
struct Account {
    status: Option<Value>,
    headers: Option<Value>,
    error: Option<Value>,
}

impl Ended {
    /// Runs what the application wants to be run after the response, the last first. One that raises does not stop
    /// the others.
    pub fn conclude(&self, ruby: &Ruby) -> Result<(), Error> {
        let Self { callbacks, account, .. } = self;
        // The application may have frozen its list. One that is not may grow while it is worked off.
        let callbacks = if callbacks.is_frozen() { callbacks.funcall("dup", ())? } else { *callbacks };
        while let Some(callback) = callbacks.pop::<Option<Value>>()? {
            let call = || -> Result<Value, Error> {
                let arity =
                    if callback.respond_to("arity", false)? { callback.funcall::<_, _, i64>("arity", ())? } else { -1 };
                if arity == 0 {
                    return callback.funcall("call", ());
                }
                callback.funcall("call", (self.env, account.status, account.headers, account.error))
            };
            match call() {
                Err(error) if call::is_application_error(ruby, &error) => {
                    call::log_error(ruby, self.logger, "rack.response_finished error", &error);
                }
                other => drop(other?),
            }
        }
        self.close_tempfiles(ruby)
    }

    /// Closes and removes the files that Rack has made of uploads, unless the application goes on with the connection,
    /// and perhaps with them.
    fn close_tempfiles(&self, ruby: &Ruby) -> Result<(), Error> {
        let files: Option<Value> = self.env.get(ruby.get_inner(&keys::TEMPFILES));
        let Some(files) = files.and_then(RArray::from_value).filter(|_| self.fate != Fate::Given) else {
            return Ok(());
        };
        for file in files {
            match file.funcall::<_, _, Value>("close!", ()) {
                Err(error) if call::is_application_error(ruby, &error) => {
                    call::log_error(ruby, self.logger, "rack.tempfiles error", &error);
                }
                other => drop(other?),
            }
        }
        Ok(())
    }
}

impl Exchange<'_> {
    /// Calls the application and writes its response. `memory` is a buffer to use, which is given back.
    ///
    /// An error is one that goes its own way.
    pub fn run(&mut self, ruby: &Ruby, app: Value, memory: &mut Vec<u8>) -> Result<Ended, Error> {
        let claim = Claim::new(Arc::clone(&self.connection.socket), self.leftover);
        let hijack = ruby.obj_wrap(Hijack::new(Arc::clone(&claim), self.env));
        let mut env = Filling::of(self.env);
        env.set(ruby.get_inner(&keys::HIJACK), hijack)?;
        env.set(ruby.get_inner(&keys::SOCKET), hijack)?;
        let callbacks = ruby.ary_new();
        env.set(ruby.get_inner(&keys::RESPONSE_FINISHED), callbacks)?;
        env.set(ruby.get_inner(&keys::AFTER_REPLY), callbacks)?;
        env.finish()?;
        let hints = self.offer_early_hints(ruby)?;

        let mut pending = std::mem::take(memory);
        pending.clear();
        let mut sender = Sender::new(Arc::clone(&self.connection.socket), pending, self.settings.write_timeout);
        sender.leave_up_to(self.leave_up_to);
        let forks = process::forks();
        let returned = app.funcall::<_, _, Value>(*names::CALL, (self.env,));
        if let Some(hints) = hints {
            hints.end();
        }
        let used = claim.expire();
        let taken = used == Use::Taken;
        self.request.persistent = self.request.persistent && used == Use::None;
        if self.request.persistent && process::forks() != forks {
            // A copy of this worker, in which the application has returned too. The other one's response may have gone
            // on a connection that goes on; a second one would be taken for the answer to the next request.
            return Err(call::exit(ruby));
        }
        self.request.persistent = self.request.persistent && (self.may_persist)();
        if self.request.persistent {
            sender.keep_to_this_process(forks);
        }
        let mut account = Account::default();
        let written = match returned {
            Ok(returned) => self.write(ruby, &mut sender, returned, taken, &mut account),
            Err(error) => Err(WriteError::Raised(error)),
        };
        let settled = self.settle(ruby, &mut sender, written, taken, &mut account);
        let rest = sender.take_rest();
        if let (Err(_), Some(rest)) = (&settled, &rest) {
            // This process is about to end, after the response.
            let _ = sender.send_rest(ruby, rest);
        }
        *memory = sender.into_memory();
        hijack.end(ruby)?;
        Ok(Ended { fate: settled?, rest, env: self.env, logger: self.logger, callbacks, account })
    }

    fn offer_early_hints(&self, ruby: &Ruby) -> Result<Option<EarlyHintsEnd>, Error> {
        if !self.settings.early_hints || self.request.version == Version::Http10 {
            return Ok(None);
        }
        let socket = Arc::clone(&self.connection.socket);
        let (hints, end) = EarlyHints::new(socket, self.settings.write_timeout);
        self.env.aset("rack.early_hints", ruby.obj_wrap(hints))?;
        Ok(Some(end))
    }

    fn write(
        &mut self,
        ruby: &Ruby,
        sender: &mut Sender,
        returned: Value,
        taken: bool,
        account: &mut Account,
    ) -> Result<Written, WriteError> {
        let written = if taken {
            Ok(Written::HandedOver)
        } else {
            Response::take_apart(ruby, returned).and_then(|response| {
                account.status = Some(ruby.integer_from_i64(response.status().into()).as_value());
                account.headers = Some(response.headers());
                let persistent = self.request.persistent && self.has_come();
                let request = RequestFacts { persistent, ..self.request };
                let date = self.date.get(clock::unix_seconds());
                let (logger, leftover, settings) = (self.logger, self.leftover, self.settings);
                let reader = self.has_body.then_some(self.body);
                response.write(ruby, &mut Outgoing { sender, request, date, logger, reader, leftover, settings })
            })
        };
        // The body is closed on each way out, and only here.
        match close_body(returned) {
            Err(error) if call::is_application_error(ruby, &error) => self.log_app_error(ruby, &error),
            Err(error) => return Err(error.into()),
            Ok(()) => {}
        }
        written
    }

    /// Whether nothing of the body is on its way any more. Another thread that reads it does so because it is.
    fn has_come(&self) -> bool {
        self.body.try_lock().is_ok_and(|mut body| body.has_come())
    }

    /// Tells whoever has to know how a response failed.
    fn settle(
        &mut self,
        ruby: &Ruby,
        sender: &mut Sender,
        written: Result<Written, WriteError>,
        taken: bool,
        account: &mut Account,
    ) -> Result<Fate, Error> {
        // Another thread that is still reading it has not been refused yet.
        let refused = self.body.try_lock().ok().and_then(|body| body.refused());
        let status = match written {
            Ok(Written::Persists) => return Ok(Fate::Persists),
            Ok(Written::Closes) | Err(WriteError::Gone) => return Ok(Fate::Closes),
            Ok(Written::HandedOver) => return Ok(Fate::Given),
            Err(WriteError::Malformed(what)) => {
                let error = Error::new(ruby.exception_type_error(), what);
                self.log_app_error(ruby, &error);
                500
            }
            Err(WriteError::Raised(error)) if call::is_application_error(ruby, &error) => {
                account.error = error.value();
                let clients_fault =
                    call::is_client_shutdown(ruby, &error) || error.is_kind_of(call::parser_error(ruby)?);
                match refused {
                    Some(status) if clients_fault => status,
                    None if call::is_client_shutdown(ruby, &error) => return Ok(Fate::Closes),
                    _ => {
                        self.log_app_error(ruby, &error);
                        500
                    }
                }
            }
            Err(WriteError::Raised(error)) => return Err(error),
        };
        if taken {
            return Ok(Fate::Given);
        }
        if !sender.has_begun() {
            sender.pending().clear();
            error_response(sender.pending(), status, self.date.get(clock::unix_seconds()));
            let _ = sender.flush(ruby);
        }
        Ok(Fate::Closes)
    }

    fn log_app_error(&self, ruby: &Ruby, error: &Error) {
        call::log_error(ruby, self.logger, "app error", error);
    }
}
