//! `PitchforkRs::NativeMonitor`: how `HttpServer` runs the monitor.

use std::sync::{Mutex, PoisonError};

use magnus::prelude::*;
use magnus::{Error, RArray, RHash, RModule, RString, Ruby, Value, function, method};
use pitchfork_core::listen::Listener;
use pitchfork_core::plan;

use super::settings::{count, fetch, millis, optional_count, rack};
use super::{info, listening};
use crate::process::child::{Settings, raise};
use crate::process::monitor::{Goal, Monitor, Outcome};
use crate::process::server::Server;
use crate::process::{run_child, signals};

/// Lines of the scoreboard beyond two for each configured worker: `TTIN` may ask for more of them. Untouched lines
/// cost nothing.
const SPARE_LINES: u32 = 2_048;

/// One server's monitor. Only one method of it runs at a time.
#[magnus::wrap(class = "PitchforkRs::NativeMonitor", free_immediately, size)]
pub struct NativeMonitor {
    server: Server,
    monitor: Mutex<Option<Monitor>>,
}

impl NativeMonitor {
    /// `new(server, settings)`: a server that listens nowhere yet.
    fn new(ruby: &Ruby, server: Value, settings: RHash) -> Result<Self, Error> {
        let workers = count(ruby, settings, "worker_processes", u32::MAX)?;
        let soft_timeout = millis(ruby, settings, "soft_timeout")?;
        let hard_timeout = soft_timeout + millis(ruby, settings, "cleanup_timeout")?;
        let spawn_timeout = millis(ruby, settings, "spawn_timeout")?;
        let child = Settings {
            soft_timeout,
            hard_timeout,
            spawn_timeout,
            setpgid: fetch(ruby, settings, "setpgid")?,
            mold_prepare: fetch(ruby, settings, "mold_prepare")?,
            rack: rack(ruby, settings)?,
        };
        let plan = plan::Settings {
            workers,
            hard_timeout,
            spawn_timeout,
            max_unavailable: Some(count(ruby, settings, "refork_max_unavailable", u32::MAX)?),
            service: fetch(ruby, settings, "service")?,
            max_spawn_errors: optional_count(ruby, settings, "max_consecutive_spawn_errors")?
                .and_then(|most| u32::try_from(most).ok()),
            slots: workers.saturating_mul(2).saturating_add(SPARE_LINES),
        };
        let server = Server::new(ruby, server);
        let monitor = Monitor::new(server, child, plan).map_err(|error| raise(ruby, &error))?;
        info::enter(monitor.scoreboard(), None);
        info::count_connections(monitor.counts());
        Ok(Self { server, monitor: Mutex::new(Some(monitor)) })
    }

    /// `bind(address, options)`: binds an address, as many times as it shall have queues. Gives what
    /// [`listening::show`] does.
    fn bind(ruby: &Ruby, rb_self: &Self, address: RString, options: RHash) -> Result<RArray, Error> {
        let options = listening::options(ruby, options)?;
        let queues = listening::bind(ruby, address, &options)?;
        rb_self.add(ruby, queues, options.per_worker)
    }

    /// `adopt(ios, options)`: takes over sockets, all of one address, that were inherited. The IOs can be closed then.
    fn adopt(ruby: &Ruby, rb_self: &Self, ios: RArray, options: RHash) -> Result<RArray, Error> {
        let options = listening::options(ruby, options)?;
        let queues = listening::adopt(ruby, ios, &options)?;
        rb_self.add(ruby, queues, options.per_worker)
    }

    fn add(&self, ruby: &Ruby, queues: Vec<Listener>, per_worker: usize) -> Result<RArray, Error> {
        let shown = listening::show(ruby, &queues)?;
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        let monitor = monitor.as_mut().ok_or_else(|| running(ruby))?;
        monitor.add_listeners(queues, per_worker).map_err(|error| raise(ruby, &error))?;
        Ok(shown)
    }

    /// `close`: lets go of the addresses of a server that is not going to run.
    fn close(&self) {
        drop(self.monitor.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// `run(goal)`: runs until `:mold` or `:workers` are there, giving nil, or until the server has stopped, giving
    /// its exit status. Returns in the monitor only.
    fn run(ruby: &Ruby, rb_self: &Self, goal: magnus::Symbol) -> Result<Option<i32>, Error> {
        let goal = match &*goal.name()? {
            "mold" => Goal::Mold,
            "workers" => Goal::Workers,
            _ => Goal::End,
        };
        let taken = rb_self.monitor.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut monitor = taken.ok_or_else(|| running(ruby))?;
        let outcome = monitor.run(ruby, goal);
        if let Ok(Outcome::Child(role)) = outcome {
            drop(monitor);
            run_child(ruby, rb_self.server, role);
        }
        if let Ok(Outcome::Stopped(status)) = outcome {
            // With its listeners: a program that goes on must not keep the addresses.
            return Ok(Some(status));
        }
        *rb_self.monitor.lock().unwrap_or_else(PoisonError::into_inner) = Some(monitor);
        match outcome? {
            Outcome::Stopped(status) => Ok(Some(status)),
            Outcome::Reached | Outcome::Child(_) => Ok(None),
        }
    }
}

fn running(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_runtime_error(), "this monitor runs already, or has stopped")
}

/// `note_signal(number)`: what the handlers installed with `trap` call.
fn note_signal(signal: i32) {
    signals::note(signal);
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("NativeMonitor", ruby.class_object())?;
    class.define_singleton_method("new", function!(NativeMonitor::new, 2))?;
    class.define_singleton_method("note_signal", function!(note_signal, 1))?;
    class.define_method("bind", method!(NativeMonitor::bind, 2))?;
    class.define_method("adopt", method!(NativeMonitor::adopt, 2))?;
    class.define_method("close", method!(NativeMonitor::close, 0))?;
    class.define_method("run", method!(NativeMonitor::run, 1))?;
    listening::init(class)?;
    Ok(())
}
