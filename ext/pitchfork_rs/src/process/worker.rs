//! The worker: serves one request at a time, and now and then forks a mold.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use magnus::typed_data::Obj;
use magnus::value::{BoxValue, ReprValue};
use magnus::{Class, Error, RHash, RString, Ruby, Value};
use pitchfork_core::children::{Kind, Millis};
use pitchfork_core::error::Error as CoreError;
use pitchfork_core::listen::Listener;
use pitchfork_core::message::{Order, Report};
use pitchfork_core::plan::Level;
use pitchfork_core::sys::{clock, filter};

use super::child::{Child, House, Post, raise};
use super::mold::{Mold, post};
use super::private;
use super::seats::Seats;
use super::sibling::{self, Sibling, fork_sibling};
use super::{Next, Role, clockwork, signals, watcher};
use crate::rack::body::Body;
use crate::rack::call;
use crate::rack::connection::Connection;
use crate::rack::handler::{Handler, Served};
use crate::rack::keys;
use crate::ruby_api::request_timeout::RequestTimeout;
use crate::vm::gvl;

/// A queue that has stayed empty for so long at the end of a drain holds nobody any more, unless somebody is still on
/// the way into it.
const QUIET: Duration = Duration::from_millis(50);

/// Who is on the way into a queue is there within this time: the kernel asks those whom it keeps back once more after
/// a second. Others never come, such as the senders of a flood.
const ARRIVAL: Millis = 1_500;

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
        watcher::start(ruby, &child.house, *child.object, timeout);
        child.hook(ruby, "after_worker_ready")?;
        if !child.is_wanted() {
            return Ok(Next::Exit(1));
        }
        clockwork::stop();
        child.line().set_ready();
        child.report(ruby, Report::Ready)?;

        let mut serving = Serving::new(ruby, child, self.handler, private, timeout)?;
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
            // With its own sockets: they are the worker's, which goes on.
            let Serving { child, handler, .. } = serving;
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
            serving.child.house.server.call(ruby, "worker_exit", (*serving.child.object,))?;
        }
        ended.map(|_| Next::Exit(0))
    }
}

/// A worker at work.
struct Serving {
    child: Child,
    handler: Handler,
    seats: Seats,
    /// Lives in the handler's template.
    timeout: Obj<RequestTimeout>,
    /// Whether there is anything to run after each request. Finding that out takes longer than many a request.
    has_request_hook: bool,
    condition: Option<Value>,
    /// Collects garbage between requests, if the configuration wants that.
    collector: Option<BoxValue<Value>>,
    promoting: bool,
}

impl Serving {
    fn new(
        ruby: &Ruby,
        child: Child,
        handler: Handler,
        private: Vec<Listener>,
        timeout: Obj<RequestTimeout>,
    ) -> Result<Self, Error> {
        let seats = Seats::take(&child, private).map_err(|error| raise(ruby, &error))?;
        // Kept alive by the configuration.
        let condition: Value = child.house.server.call(ruby, "refork_condition", ())?;
        let condition = (!condition.is_nil()).then_some(condition);
        let has_request_hook = child.house.server.call(ruby, "request_hook?", ())?.to_bool();
        let collector: Value = child.house.server.call(ruby, "out_of_band_gc", ())?;
        let collector = (!collector.is_nil()).then(|| BoxValue::new(collector));
        let serving = Self { child, handler, seats, timeout, has_request_hook, condition, collector, promoting: false };
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
                return Err(exit(ruby));
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
            mail = if let Some(connection) = self.accept(ruby) {
                self.serve_connection(ruby, &connection)?;
                drop(connection);
                self.tell_collector("count_request")?;
                false
            } else {
                self.look_around(ruby, true);
                self.tell_collector("pause")?;
                self.wait(ruby)?
            };
        }
    }

    fn accept(&mut self, ruby: &Ruby) -> Option<Connection> {
        if clockwork::is_condemned() {
            return None;
        }
        match self.seats.accept() {
            Ok(accepted) => accepted.map(|(descriptor, peer)| Connection::new(descriptor, peer)),
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

    /// Calls a method of the collector, if there is one.
    fn tell_collector(&self, method: &str) -> Result<(), Error> {
        match &self.collector {
            Some(collector) => collector.funcall::<_, _, Value>(method, ()).map(drop),
            None => Ok(()),
        }
    }

    /// Waits for something to do. `true` if it may be an order.
    fn wait(&mut self, ruby: &Ruby) -> Result<bool, Error> {
        clockwork::stop();
        let timeout = self.child.heartbeat();
        Ok(gvl::wait(ruby, || self.seats.wait(timeout))?.unwrap_or(false))
    }

    fn serve_connection(&mut self, ruby: &Ruby, connection: &Connection) -> Result<(), Error> {
        let child = &self.child;
        let requests = child.line().requests();
        let timeout = self.timeout;
        let mut begin = |ruby: &Ruby, env: RHash, path: &str| {
            let id = env.get(ruby.get_inner(&keys::REQUEST_ID)).and_then(RString::from_value);
            let id = id.and_then(|id| id.to_string().ok());
            let id = id.map(|id| format!(", request_id: {id}")).unwrap_or_default();
            child.title(ruby, format_args!("requests: {requests}, processing: {path}{id}"));
            timeout.set_env(Some(env));
            Ok(())
        };
        let handler = &mut self.handler;
        let served = catch_unwind(AssertUnwindSafe(|| handler.serve(ruby, connection, &mut begin)));
        let Ok(served) = served else {
            // A bug of this server, which must not cost more than the request it met. The panic's message went to
            // stderr when it happened.
            self.handler.apologise(connection);
            clockwork::stop();
            return Ok(());
        };
        let served = served?;
        timeout.set_env(None);
        if let Served::Called { env, body } = served {
            self.child.line().count_request();
            self.after_request(ruby, env)?;
            Body::end_shared(ruby, &body, &connection.socket)?;
        }
        clockwork::stop();
        self.title_waiting(ruby);
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

    /// Asks the condition whether it is time for a refork, and the monitor whether it may be now.
    fn ask_condition(&mut self, ruby: &Ruby, condition: Value) -> Result<(), Error> {
        let line = self.child.line();
        if line.is_unsafe_to_fork() || self.child.house.scoreboard.is_outdated(self.child.post.slot) {
            return Ok(());
        }
        let logger = self.child.house.server.logger(ruby)?;
        if condition.funcall::<_, _, Value>("met?", (*self.child.object, logger))?.to_bool() {
            self.promoting = true;
            self.child.report(ruby, Report::ConditionMet)?;
            if condition.respond_to("backoff!", false)? {
                condition.funcall::<_, _, Value>("backoff!", ())?;
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

    /// Forks the next mold. Gives the post back in the new process.
    fn promote(&mut self, ruby: &Ruby, post: Post) -> Result<Option<Post>, Error> {
        let House { server, settings, .. } = &*self.child.house;
        let by_condition = std::mem::take(&mut self.promoting);
        let token = post.token;
        if self.child.line().is_unsafe_to_fork() {
            self.child.report(ruby, Report::SpawnFailed { token, unsafe_to_fork: true })?;
            return Ok(None);
        }
        let requests = self.child.line().requests();
        self.child.title(ruby, format_args!("requests: {requests}, spawning mold"));
        self.child.promise(settings.spawn_timeout + sibling::PATIENCE);
        if by_condition {
            let line = format!("{} refork condition met, promoting ourselves", self.child.name()?);
            server.log(ruby, Level::Info, &line);
        }
        server.hook_or_end(ruby, "before_fork", ())?;
        match fork_sibling(ruby, &self.child, &post.channel)? {
            Sibling::Child => return Ok(Some(post)),
            Sibling::Forked => {}
            Sibling::NoRoom | Sibling::Broken => {
                server.log(ruby, Level::Error, &format!("{} failed to spawn a mold", self.child.name()?));
                self.child.report(ruby, Report::SpawnFailed { token, unsafe_to_fork: false })?;
            }
        }
        clockwork::stop();
        self.title_waiting(ruby);
        Ok(None)
    }

    /// Takes what this worker may have been woken for just before it was told to leave: the kernel wakes one worker
    /// for a connection, and would not wake another. What waits in sockets that nobody else has is served to the end.
    fn take_last_call(&mut self, ruby: &Ruby) -> Result<(), Error> {
        self.seats.stop_watching();
        if let Some(connection) = self.accept(ruby) {
            self.serve_connection(ruby, &connection)?;
        }
        if !self.seats.are_private() {
            return Ok(());
        }
        let refused = self.seats.keep_to_private();
        self.log_failure(ruby, refused);
        self.serve_what_is_left(ruby)
    }

    /// Serves what is in the queues of all. The monitor has seen to it that nothing new gets in.
    fn drain(&mut self, ruby: &Ruby) -> Result<(), Error> {
        let refused = self.seats.help_out();
        self.log_failure(ruby, refused);
        self.serve_what_is_left(ruby)
    }

    /// Serves until the queues stay empty.
    fn serve_what_is_left(&mut self, ruby: &Ruby) -> Result<(), Error> {
        let begin = clock::monotonic();
        let end = begin + self.child.house.settings.soft_timeout;
        let mut quiet_since = Instant::now();
        let mut is_last_look = false;
        while clock::monotonic() < end {
            ruby.thread_check_ints()?;
            if let Some(connection) = self.accept(ruby) {
                filter::accept_packets(&*connection.socket);
                self.serve_connection(ruby, &connection)?;
                quiet_since = Instant::now();
                is_last_look = false;
            } else if is_last_look {
                break;
            } else if quiet_since.elapsed() < QUIET {
                // Not epoll: a Unix listener that was shut down is always ready.
                gvl::wait(ruby, || std::thread::sleep(Duration::from_millis(2)))?;
            } else if clock::monotonic() < begin + ARRIVAL && self.seats.are_awaited() {
                quiet_since = Instant::now();
            } else {
                // Somebody may have arrived between the two questions.
                is_last_look = true;
            }
        }
        Ok(())
    }

    fn title_waiting(&self, ruby: &Ruby) {
        self.child.title(ruby, format_args!("requests: {}, waiting", self.child.line().requests()));
    }
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
            return Err(exit(ruby));
        }
    }
    Ok(())
}

/// What Ruby's `exit` raises.
fn exit(ruby: &Ruby) -> Error {
    ruby.exception_system_exit().new_instance((0, "exit")).map_or_else(|error| error, Error::from)
}
