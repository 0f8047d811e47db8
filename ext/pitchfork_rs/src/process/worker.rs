//! The worker: serves one request at a time, and now and then forks a mold.

mod holding;
mod leaving;
mod promoting;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use magnus::typed_data::Obj;
use magnus::value::{BoxValue, ReprValue};
use magnus::{Error, RHash, RString, Ruby, Value};
use pitchfork_core::children::{Kind, Millis};
use pitchfork_core::error::Error as CoreError;
use pitchfork_core::listen::Listener;
use pitchfork_core::message::{Order, Report};
use pitchfork_core::plan::Level;
use pitchfork_core::sys::clock;

use self::holding::has_outlet;
use super::child::{Child, House, Post, raise};
use super::mold::{Mold, post};
use super::private;
use super::seats::Seats;
use super::watcher::Burden;
use super::{Next, Role, clockwork, outlet, signals, watcher};
use crate::rack::body::Body;
use crate::rack::call;
use crate::rack::connection::Connection;
use crate::rack::handler::{Handler, Host, Missing, Served};
use crate::rack::keys;
use crate::ruby_api::request_timeout::RequestTimeout;
use crate::vm::gvl;

/// A worker that is about to begin.
pub struct Worker {
    /// What every process knows.
    pub house: Rc<House>,
    /// Its place.
    pub post: Post,
    /// The application.
    pub handler: Handler,
}

/// What ends a worker's serving.
enum Turn {
    Leave { drain: bool },
    Fork(Post),
}

impl Worker {
    /// Serves until told to leave, or until it finds itself a mold.
    pub fn run(self, ruby: &Ruby) -> Result<Next, Error> {
        let Some(child) = Child::take_up(ruby, self.house, self.post)? else { return Ok(Next::Exit(1)) };
        let House { server, settings, .. } = &*child.house;
        private::open();
        let hooked = child.hook(ruby, "after_worker_fork");
        let private = private::close();
        hooked?;
        server.call(ruby, "trap_leave_signals", ())?;
        let timeout = ruby.obj_wrap(RequestTimeout::default());
        self.handler.set_env("pitchfork.worker", *child.object)?;
        self.handler.set_env("pitchfork.timeout", timeout.as_value())?;
        clockwork::set_up(child.line(), settings.soft_timeout, settings.hard_timeout, settings.rack.longest_wait());
        let burden = Burden::new().map_err(|error| raise(ruby, &error))?;
        watcher::start(ruby, &child.house, *child.object, timeout, Arc::clone(&burden));
        child.hook(ruby, "after_worker_ready")?;
        if !child.is_wanted() {
            return Ok(Next::Exit(1));
        }
        clockwork::stop();
        child.line().set_ready();
        child.report(ruby, Report::Ready)?;

        let mut serving = Serving::new(ruby, child, self.handler, private, timeout, burden)?;
        let ended = serving.serve(ruby);
        // A mold prepares, and a worker leaves, as if there had been no collector.
        let told = serving.tell_collector("end");
        let ended = ended.and_then(|turn| {
            told?;
            match turn {
                Turn::Leave { drain: true } => serving.drain(ruby)?,
                Turn::Leave { drain: false } => serving.take_last_call(ruby)?,
                Turn::Fork(_) => {}
            }
            Ok(turn)
        });
        if let Ok(Turn::Fork(post)) = ended {
            // With its own sockets, and what it holds: they are the worker's, which goes on.
            let Serving { child, handler, burden, .. } = serving;
            burden.close();
            child.house.server.call(ruby, "forget_private_listeners", ())?;
            let mold = Mold { house: child.house, post, handler: Some(handler) };
            return Ok(Next::Become(Role::Mold(Box::new(mold))));
        }
        // A request that has ended by an exit is not late, however long the exit takes.
        clockwork::stop();
        if ended.is_ok() {
            await_execution(ruby)?;
        }
        if serving.child.is_itself() {
            serving.part_with_all(ruby);
            serving.child.house.server.call(ruby, "worker_exit", (*serving.child.object,))?;
        }
        ended.map(|_| Next::Exit(0))
    }
}

/// What the title says. While one request follows another it need not say that this worker waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Waiting,
    Other,
}

/// A worker at work.
struct Serving {
    child: Child,
    handler: Handler,
    seats: Seats,
    /// What it shares with its watcher.
    burden: Arc<Burden>,
    /// Lives in the handler's template.
    timeout: Obj<RequestTimeout>,
    /// Whether there is anything to run after each request. Finding that out takes longer than many a request.
    has_request_hook: bool,
    condition: Option<Value>,
    /// Collects garbage between requests, if the configuration wants that.
    collector: Option<BoxValue<Value>>,
    promoting: bool,
    /// Whether no connection may wait here for another request.
    is_parting: bool,
    shown: Shown,
}

impl Serving {
    fn new(
        ruby: &Ruby,
        child: Child,
        handler: Handler,
        private: Vec<Listener>,
        timeout: Obj<RequestTimeout>,
        burden: Arc<Burden>,
    ) -> Result<Self, Error> {
        let seats = Seats::take(&child, private, Arc::clone(&burden)).map_err(|error| raise(ruby, &error))?;
        // Kept alive by the configuration.
        let condition: Value = child.house.server.call(ruby, "refork_condition", ())?;
        let condition = (!condition.is_nil()).then_some(condition);
        let has_request_hook = child.house.server.call(ruby, "request_hook?", ())?.to_bool();
        let collector: Value = child.house.server.call(ruby, "out_of_band_gc", ())?;
        let collector = (!collector.is_nil()).then(|| BoxValue::new(collector));
        let serving = Self {
            child,
            handler,
            seats,
            burden,
            timeout,
            has_request_hook,
            condition,
            collector,
            promoting: false,
            is_parting: false,
            shown: Shown::Other,
        };
        serving.tell_collector("begin")?;
        Ok(serving)
    }

    fn serve(&mut self, ruby: &Ruby) -> Result<Turn, Error> {
        self.title_waiting(ruby);
        let mut mail = true;
        loop {
            ruby.thread_check_ints()?;
            await_execution(ruby)?;
            if !self.child.is_itself() {
                return Err(call::exit(ruby));
            }
            if (mail || self.child.line().take_mail())
                && let Some(turn) = self.carry_out_orders(ruby)?
            {
                return Ok(turn);
            }
            if signals::take(libc::SIGTERM) || signals::take(libc::SIGQUIT) || !self.child.is_wanted() {
                return Ok(Turn::Leave { drain: false });
            }
            self.look_around(ruby, false);
            let told = self.seats.is_round_over() && self.look();
            mail = match self.next(ruby) {
                Some(connection) => {
                    self.serve_connection(ruby, connection)?;
                    self.tell_collector("count_request")?;
                    told
                }
                None if told => true,
                None => {
                    self.look_around(ruby, true);
                    self.tell_collector("pause")?;
                    self.wait(ruby)?
                }
            };
        }
    }

    /// The connection whose turn it is.
    fn next(&mut self, ruby: &Ruby) -> Option<Connection> {
        if clockwork::is_condemned() {
            return None;
        }
        match self.seats.next() {
            Ok(connection) => connection,
            Err(error) => {
                // Descriptors or memory are short. The connection stays in its queue; a pause keeps this from
                // spinning.
                self.child.house.server.log(ruby, Level::Error, &format!("listen loop error: {error}"));
                let _ = gvl::without(|| std::thread::sleep(Duration::from_millis(100)));
                None
            }
        }
    }

    /// Sees to it that each queue has somebody who serves it. What fails here is tried again when somebody else comes
    /// or goes.
    fn look_around(&mut self, ruby: &Ruby, is_idle: bool) {
        let looked = self.seats.look_around(is_idle);
        self.log_failure(ruby, looked);
    }

    /// Logs what must not keep this worker from going on with the sockets that it has.
    fn log_failure(&self, ruby: &Ruby, result: Result<(), CoreError>) {
        if let Err(error) = result {
            self.child.house.server.log(ruby, Level::Error, &format!("listen loop error: {error}"));
        }
    }

    /// Calls a method of the collector, if there is one. Nobody waits for it meanwhile who can be served elsewhere.
    fn tell_collector(&self, method: &str) -> Result<(), Error> {
        let Some(collector) = &self.collector else { return Ok(()) };
        clockwork::be_busy();
        let told = collector.funcall::<_, _, Value>(method, ());
        clockwork::stop();
        told.map(drop)
    }

    /// Looks what is ready, without waiting. `true` if there may be an order.
    fn look(&mut self) -> bool {
        let now = clockwork::stop();
        let told = self.seats.wait(0);
        self.seats.call_late(now);
        told
    }

    /// Waits for something to do. `true` if it may be an order.
    fn wait(&mut self, ruby: &Ruby) -> Result<bool, Error> {
        self.title_waiting(ruby);
        let now = clockwork::stop();
        let held = self.seats.held().next_deadline().map_or(Millis::MAX, |deadline| deadline.saturating_sub(now));
        let timeout = self.child.heartbeat().min(held);
        Ok(gvl::wait(ruby, || self.seats.wait(timeout))?.unwrap_or(false))
    }

    /// Serves one request of a connection, as far as it has come.
    fn serve_connection(&mut self, ruby: &Ruby, connection: Connection) -> Result<(), Error> {
        self.serve_request(ruby, connection, false)
    }

    fn serve_request(&mut self, ruby: &Ruby, mut connection: Connection, waits: bool) -> Result<(), Error> {
        let Self { child, handler, timeout, is_parting, .. } = self;
        let requests = child.line().requests();
        let mut begin = |ruby: &Ruby, env: RHash, path: &str| {
            let id = env.get(ruby.get_inner(&keys::REQUEST_ID)).and_then(RString::from_value);
            let id = id.and_then(|id| id.to_string().ok());
            let id = id.map(|id| format!(", request_id: {id}")).unwrap_or_default();
            child.title(ruby, format_args!("requests: {requests}, processing: {path}{id}"));
            timeout.set_env(Some(env));
            Ok(())
        };
        let may_persist = || !*is_parting && stays(child);
        let link = &child.house.link;
        let passed_on = Cell::new(false);
        let pass_on = |connection: &Connection, bytes, served, content| {
            if !has_outlet(child) {
                return Err(content);
            }
            passed_on.set(true);
            outlet::send(link, connection, bytes, served, content)
        };
        let mut host = Host { begin: &mut begin, may_persist: &may_persist, waits, pass_on: &pass_on };
        let was_empty = connection.intake.is_none();
        let served = catch_unwind(AssertUnwindSafe(|| handler.serve(ruby, &mut connection, &mut host)));
        let Ok(served) = served else {
            // A bug of this server, which must not cost more than the request it met. The panic's message went to
            // stderr when it happened.
            self.seats.held().forget(&mut connection);
            self.handler.apologise(&connection);
            self.shown = Shown::Other;
            clockwork::stop();
            return Ok(());
        };
        if passed_on.get() {
            self.want_reactor(ruby);
        }
        let served = served?;
        if !self.child.is_itself() {
            // A copy of this worker: the connections are the other one's, and so may be the locks.
            return Err(call::exit(ruby));
        }
        match served {
            Served::Waiting(missing) => {
                let now = clockwork::stop();
                let begins_head = connection.served > 0 && was_empty && connection.intake.is_some();
                let begins_body = missing != Missing::Head && !connection.awaits_body;
                if connection.since == 0 || begins_head || begins_body {
                    connection.since = now;
                }
                connection.awaits_body = missing != Missing::Head;
                return self.hold_or_end(ruby, connection, missing, now);
            }
            Served::Unheard => self.seats.held().forget(&mut connection),
            Served::Called { body, persists, ended } => {
                self.shown = Shown::Other;
                let reader = (!persists).then(|| Arc::clone(&connection.socket));
                if persists {
                    // Before what the application still does about the response: the client does not wait for that.
                    connection.since = clock::monotonic();
                    self.hold(ruby, connection);
                } else {
                    self.seats.held().forget(&mut connection);
                }
                ended.conclude(ruby)?;
                if !self.child.is_itself() {
                    return Err(call::exit(ruby));
                }
                self.timeout.set_env(None);
                self.child.line().count_request();
                self.after_request(ruby, ended.env)?;
                Body::end_shared(ruby, &body, reader.as_deref())?;
            }
        }
        clockwork::stop();
        Ok(())
    }

    fn after_request(&mut self, ruby: &Ruby, env: RHash) -> Result<(), Error> {
        let server = self.child.house.server;
        let worker = *self.child.object;
        if self.has_request_hook {
            server.hook_or_log(ruby, "after_request_complete", (worker, env), "listen loop error")?;
        }
        if let Some(condition) = self.condition {
            match self.ask_condition(ruby, condition) {
                Err(error) if call::is_application_error(ruby, &error) => {
                    server.log_error(ruby, "listen loop error", &error);
                }
                other => other?,
            }
        }
        Ok(())
    }

    fn carry_out_orders(&mut self, ruby: &Ruby) -> Result<Option<Turn>, Error> {
        while let Some((order, descriptor)) = self.child.next_order(ruby)? {
            match (order, descriptor) {
                (Order::Leave { drain }, _) => return Ok(Some(Turn::Leave { drain })),
                (Order::Promote { token, slot, generation }, Some(descriptor)) => {
                    let post = post(token, Kind::Mold, generation, slot, descriptor);
                    if let Some(post) = self.promote(ruby, post)? {
                        return Ok(Some(Turn::Fork(post)));
                    }
                }
                (order, _) => self.child.complain(ruby, order)?,
            }
        }
        Ok(None)
    }

    fn title_waiting(&mut self, ruby: &Ruby) {
        if std::mem::replace(&mut self.shown, Shown::Waiting) == Shown::Waiting {
            return;
        }
        self.child.title(ruby, format_args!("requests: {}, waiting", self.child.line().requests()));
    }
}

/// Whether a worker will be there for another request, as far as it can be known now.
fn stays(child: &Child) -> bool {
    let is_told = child.line().has_mail() || signals::is_pending(libc::SIGTERM) || signals::is_pending(libc::SIGQUIT);
    !is_told && !child.house.scoreboard.is_shutting_down() && child.is_wanted() && !clockwork::is_condemned()
}

/// Returns at once unless this worker was found too slow: then the watcher's thread runs the hooks, and ends this process
/// with an exception that interrupts this. Nothing else may be begun meanwhile; the monitor does not wait for ever.
///
/// Applications rescue exceptions of every kind to answer 500. Theirs was that one if it does not come now.
fn await_execution(ruby: &Ruby) -> Result<(), Error> {
    while clockwork::is_condemned() {
        let told = clockwork::is_executed();
        gvl::wait(ruby, || std::thread::sleep(Duration::from_millis(200)))?;
        if told {
            return Err(call::exit(ruby));
        }
    }
    Ok(())
}
