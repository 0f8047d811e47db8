//! The worker: serves one request at a time, and now and then forks a mold.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use magnus::typed_data::Obj;
use magnus::value::ReprValue;
use magnus::{Class, Error, RHash, Ruby, Value};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use pitchfork_core::children::Kind;
use pitchfork_core::error::Error as CoreError;
use pitchfork_core::message::{Order, Report};
use pitchfork_core::plan::Level;
use pitchfork_core::sys::{clock, filter};
use std::os::fd::AsFd;

use super::child::{Child, House, Post, raise};
use super::mold::{Mold, post};
use super::sibling::{self, Sibling, fork_sibling};
use super::{Next, Role, clockwork, signals, watcher};
use crate::rack::body::Body;
use crate::rack::call;
use crate::rack::connection::Connection;
use crate::rack::handler::{Handler, Served};
use crate::ruby_api::request_timeout::RequestTimeout;
use crate::vm::gvl;

/// A queue that has stayed empty for so long at the end of a drain holds nobody any more: connections that were
/// being made when the filter was set have arrived by then.
const QUIET: Duration = Duration::from_millis(50);

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
        child.hook(ruby, "after_worker_fork")?;
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

        let mut serving = Serving::new(ruby, child, self.handler, timeout)?;
        let ended = serving.serve(ruby).and_then(|turn| {
            match turn {
                Turn::Leave { drain: true } => serving.drain(ruby)?,
                Turn::Leave { drain: false } => serving.take_last_call(ruby)?,
                Turn::Fork(_) => {}
            }
            Ok(turn)
        });
        if let Ok(Turn::Fork(post)) = ended {
            let Serving { child, handler, .. } = serving;
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
    epoll: Epoll,
    /// Lives in the handler's template.
    timeout: Obj<RequestTimeout>,
    /// The listener that gave the last connection; the next one asked is its neighbour.
    cursor: usize,
    condition: Option<Value>,
    promoting: bool,
}

impl Serving {
    fn new(ruby: &Ruby, child: Child, handler: Handler, timeout: Obj<RequestTimeout>) -> Result<Self, Error> {
        let epoll = watch_all(&child).map_err(|error| raise(ruby, &error))?;
        // Kept alive by the configuration.
        let condition: Value = child.house.server.call(ruby, "refork_condition", ())?;
        let condition = (!condition.is_nil()).then_some(condition);
        Ok(Self { child, handler, epoll, timeout, cursor: 0, condition, promoting: false })
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
            mail = match self.accept(ruby) {
                Some(connection) => {
                    self.serve_connection(ruby, &connection)?;
                    false
                }
                None => self.wait(ruby)?,
            };
        }
    }

    fn accept(&mut self, ruby: &Ruby) -> Option<Connection> {
        if clockwork::is_condemned() {
            return None;
        }
        let listeners = &self.child.house.listeners;
        for step in 1..=listeners.len() {
            let at = (self.cursor + step) % listeners.len();
            match listeners[at].accept() {
                Ok(Some((descriptor, peer))) => {
                    self.cursor = at;
                    return Some(Connection::new(descriptor, peer));
                }
                Ok(None) => {}
                Err(error) => {
                    // Descriptors or memory are short. The connection stays in its queue; a pause keeps this from
                    // spinning.
                    self.child.house.server.log(ruby, Level::Error, &format!("listen loop error: {error}"));
                    let _ = gvl::without(|| std::thread::sleep(Duration::from_millis(100)));
                    return None;
                }
            }
        }
        None
    }

    /// Waits for something to do. `true` if it may be an order.
    fn wait(&mut self, ruby: &Ruby) -> Result<bool, Error> {
        clockwork::stop();
        let timeout = EpollTimeout::try_from(self.child.heartbeat()).unwrap_or(EpollTimeout::NONE);
        let mut events = [EpollEvent::empty(); 8];
        let ready = gvl::wait(ruby, || self.epoll.wait(&mut events, timeout))?;
        let ready = ready.and_then(Result::ok).unwrap_or(0);
        Ok(events[..ready].iter().any(|event| event.data() == ORDERS))
    }

    fn serve_connection(&mut self, ruby: &Ruby, connection: &Connection) -> Result<(), Error> {
        let child = &self.child;
        let requests = child.line().requests();
        let timeout = self.timeout;
        let mut begin = |ruby: &Ruby, env: RHash, path: &str| {
            let id: Option<String> = env.get("HTTP_X_REQUEST_ID").and_then(|id| id.funcall("to_s", ()).ok());
            let id = id.map(|id| format!(", request_id: {id}")).unwrap_or_default();
            child.title(ruby, &format!("requests: {requests}, processing: {path}{id}"));
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
        server.hook_or_log(ruby, "after_request_complete", (worker, env), "listen loop error")?;
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
        self.child.title(ruby, &format!("requests: {requests}, spawning mold"));
        self.child.promise(settings.spawn_timeout + sibling::PATIENCE);
        server.hook_or_end(ruby, "before_fork", ())?;
        match fork_sibling(ruby, &self.child, &post.channel)? {
            Sibling::Child => return Ok(Some(post)),
            Sibling::Forked if by_condition => {
                let line = format!("{} refork condition met, promoting ourselves", self.child.name()?);
                server.log(ruby, Level::Info, &line);
            }
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
    /// for a connection, and would not wake another.
    fn take_last_call(&mut self, ruby: &Ruby) -> Result<(), Error> {
        for listener in &self.child.house.listeners {
            let _ = self.epoll.delete(listener);
        }
        match self.accept(ruby) {
            Some(connection) => self.serve_connection(ruby, &connection),
            None => Ok(()),
        }
    }

    /// Serves what is in the queues until they stay empty. The monitor has seen to it that nothing new gets in.
    fn drain(&mut self, ruby: &Ruby) -> Result<(), Error> {
        let settings = self.child.house.settings;
        let end = clock::monotonic() + settings.soft_timeout;
        let mut quiet_since = std::time::Instant::now();
        while quiet_since.elapsed() < QUIET && clock::monotonic() < end {
            ruby.thread_check_ints()?;
            if let Some(connection) = self.accept(ruby) {
                filter::accept_packets(&*connection.socket);
                self.serve_connection(ruby, &connection)?;
                quiet_since = std::time::Instant::now();
            } else {
                // Not epoll: a Unix listener that was shut down is always ready.
                gvl::wait(ruby, || std::thread::sleep(Duration::from_millis(2)))?;
            }
        }
        Ok(())
    }

    fn title_waiting(&self, ruby: &Ruby) {
        self.child.title(ruby, &format!("requests: {}, waiting", self.child.line().requests()));
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

/// The mark of the channel among the epoll events; listeners have smaller ones.
const ORDERS: u64 = u64::MAX;

/// An epoll instance of this process alone, over its channel and all listeners. Of the workers that wait for the
/// same listener only one is woken.
fn watch_all(child: &Child) -> Result<Epoll, CoreError> {
    let failed = |call, what: &str| {
        let what = what.to_owned();
        move |errno: nix::Error| CoreError::system(call, what, errno)
    };
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1", "a worker"))?;
    epoll
        .add(child.post.channel.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, ORDERS))
        .map_err(failed("epoll_ctl", "a channel"))?;
    for (listener, mark) in child.house.listeners.iter().zip(0..) {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLEXCLUSIVE;
        epoll
            .add(listener.as_fd(), EpollEvent::new(flags, mark))
            .map_err(failed("epoll_ctl", &listener.address().to_string()))?;
    }
    Ok(epoll)
}
