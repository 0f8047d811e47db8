//! `PitchforkRs::NativeMonitor`: how `HttpServer` runs the monitor.

use std::sync::{Mutex, PoisonError};

use magnus::prelude::*;
use magnus::{Error, RArray, RHash, RModule, Ruby, TryConvert, Value, function, method};
use pitchfork_core::listen::{Address, Listener, Options};
use pitchfork_core::plan;

use super::info;
use super::settings::{count, fetch, millis, optional_count, rack};
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
    /// `new(server, settings)`: binds the listeners.
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
        let listeners = bind(ruby, fetch(ruby, settings, "listeners")?)?;
        let monitor = Monitor::new(server, child, plan, listeners).map_err(|error| raise(ruby, &error))?;
        info::enter(monitor.scoreboard(), None);
        Ok(Self { server, monitor: Mutex::new(Some(monitor)) })
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
        let mut monitor =
            taken.ok_or_else(|| Error::new(ruby.exception_runtime_error(), "this monitor runs already"))?;
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

fn bind(ruby: &Ruby, listeners: RArray) -> Result<Vec<Listener>, Error> {
    let mut bound = Vec::new();
    for listener in listeners {
        let (address, backlog) = <(String, i32)>::try_convert(listener)?;
        let listener = address
            .parse::<Address>()
            .and_then(|address| Listener::bind(address, Options { backlog }))
            .map_err(|error| raise(ruby, &error))?;
        bound.push(listener);
    }
    Ok(bound)
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
    class.define_method("run", method!(NativeMonitor::run, 1))?;
    Ok(())
}
