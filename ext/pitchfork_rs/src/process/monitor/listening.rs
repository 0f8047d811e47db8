//! What the monitor does about sockets: it binds them, begins to listen, and shuts them when the server ends.

use std::collections::VecDeque;
use std::sync::Arc;

use magnus::Ruby;
use pitchfork_core::error::Error as CoreError;
use pitchfork_core::listen::Listener;
use pitchfork_core::plan::{Event, Level};
use pitchfork_core::sys::bell::Bell;

use super::Monitor;

impl Monitor {
    /// Adds the sockets of one address, of which each worker shall serve `per_worker`.
    pub fn add_listeners(&mut self, queues: Vec<Listener>, per_worker: usize) -> Result<(), CoreError> {
        self.listeners.add(queues, per_worker);
        if self.listeners.are_shared_out() && self.bell.is_none() {
            self.bell = Some(Arc::new(Bell::new()?));
        }
        Ok(())
    }

    /// Begins to listen. If somebody else has taken an address during the boot, there is nothing to serve for.
    pub(super) fn listen(&mut self, ruby: &Ruby, events: &mut VecDeque<Event>) {
        for listener in self.listeners.iter() {
            match listener.listen() {
                Ok(()) => self.server.log(ruby, Level::Info, &format!("listening on {}", listener.to_log())),
                Err(error) => {
                    self.server.log(ruby, Level::Fatal, &error.to_string());
                    events.push_back(Event::CannotListen);
                }
            }
        }
    }

    /// Lets nobody new in.
    pub(super) fn stop_listening(&self, ruby: &Ruby) {
        for listener in self.listeners.iter() {
            if let Err(error) = listener.refuse_new() {
                self.server.log(ruby, Level::Error, &error.to_string());
            }
        }
    }

    /// Has the workers look what waits: who has died may be the one that was woken for it.
    pub(super) fn nudge(&self) {
        if let Some(queues) = &self.queues {
            queues.nudge.ring();
        }
    }

    /// Has the workers look who else is at work, if that has changed: whose queues they serve depends on it.
    pub(super) fn tell_who_is_present(&mut self) {
        let Some(bell) = &self.bell else { return };
        let present = self.scoreboard.ready_workers();
        if present != self.present {
            self.present = present;
            bell.ring();
        }
    }
}
