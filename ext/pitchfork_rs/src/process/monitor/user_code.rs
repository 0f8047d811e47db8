//! The user's code in the monitor: its hooks, and what comes of their exits and errors.

use std::collections::VecDeque;

use magnus::{Error, Ruby, TryConvert, Value};
use pitchfork_core::children::{Child, Pid};
use pitchfork_core::plan::Event;

use super::Monitor;
use crate::process::{Role, exit_status};
use crate::rack::call;
use crate::ruby_api::worker::Worker as WorkerObject;

impl Monitor {
    /// What the operator wants an overdue child to be sent.
    pub(super) fn timeout_signal(&self, ruby: &Ruby, pid: Pid) -> i32 {
        let number = self.server.call(ruby, "timeout_signal_for", (pid,)).and_then(i32::try_convert);
        number.unwrap_or_else(|error| {
            self.server.log_error(ruby, "timeout_signal error", &error);
            libc::SIGKILL
        })
    }

    /// Runs the hook for a child that is about to be killed.
    pub(super) fn tell_hard_timeout(&self, ruby: &Ruby, child: &Child) -> Result<(), Error> {
        let Child { slot, token, kind, generation, pid, .. } = *child;
        let object = WorkerObject::living(self.scoreboard, slot, token, kind, generation, pid.unwrap_or(0));
        let object = ruby.obj_wrap(object);
        self.server.hook_or_log(ruby, "after_worker_hard_timeout", (object,), "after_worker_hard_timeout error")
    }

    /// Runs the hook for a child that was reaped.
    pub(super) fn tell_departure(&self, ruby: &Ruby, child: &Child, status: Option<Value>) -> Result<(), Error> {
        let Some(status) = status else { return Ok(()) };
        let requests = self.scoreboard.line(child.slot).requests();
        let object = WorkerObject::departed(self.scoreboard, child, requests);
        let object = ruby.obj_wrap(object);
        self.server.hook_or_log(ruby, "after_worker_exit", (object, status), "monitor loop error")
    }

    /// What a thread of the user's has raised in this one: its `exit`, or its error if it aborts on exceptions. Neither
    /// must cost the requests in hand.
    pub(super) fn heed_thread(&mut self, ruby: &Ruby, error: Error) -> Result<Option<Role>, Error> {
        if error.is_kind_of(ruby.exception_system_exit()) {
            return self.handle(ruby, Event::ExitAsked(exit_status(&error)), None);
        }
        if !call::is_application_error(ruby, &error) {
            return Err(error);
        }
        self.server.log_error(ruby, "monitor loop error", &error);
        Ok(None)
    }
}

/// Turns an `exit` in a hook of the monitor into an orderly end.
pub(super) fn heed_exit(ruby: &Ruby, called: Result<(), Error>, events: &mut VecDeque<Event>) -> Result<(), Error> {
    match called {
        Err(error) if error.is_kind_of(ruby.exception_system_exit()) => {
            events.push_back(Event::ExitAsked(exit_status(&error)));
            Ok(())
        }
        other => other,
    }
}
