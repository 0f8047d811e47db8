//! What the monitor has to do with the reactor.

use std::collections::VecDeque;

use magnus::value::ReprValue;
use magnus::{Ruby, Value};
use pitchfork_core::children::{Child, Kind, Token};
use pitchfork_core::message::Order;
use pitchfork_core::plan::{Event, Level};
use pitchfork_core::sys::process;

use super::Monitor;
use crate::process::reactor::{self, Inheritance};

impl Monitor {
    /// Forks the reactor. Never returns in it.
    pub(super) fn start_reactor(&mut self, ruby: &Ruby, token: Token, slot: u32, events: &mut VecDeque<Event>) {
        let monitor = std::process::id().cast_signed();
        let Some(channel) = self.fork_child(ruby, token, slot, Kind::Reactor, events) else { return };
        // Whatever is missing here: this process must not go on as another monitor.
        let Some(queues) = self.queues.take() else { process::leave(1) };
        let line = self.scoreboard.line(slot);
        reactor::run(Inheritance {
            monitor,
            token,
            channel,
            line,
            queues,
            counts: self.counts,
            settings: self.settings,
        })
    }

    /// Tells everybody whether there is a reactor.
    pub(super) fn tell_of_reactor(&self) {
        self.scoreboard.set_reactor(self.state.has_reactor());
        if self.state.children().reactor().is_none() {
            // What it had in hand is gone with it, and nobody shall wait for that. One that was killed is there until it
            // is reaped: up to then it may still count.
            self.counts.begin();
        }
    }

    /// Tells the reactor that nobody else is left. If it does not hear of it, its deadline ends it.
    pub(super) fn conclude(&self, token: Token) {
        if let Some(channel) = self.channels.get(&token) {
            let _ = channel.send(&Order::Conclude.encode(), None);
        }
    }

    /// Says how a child has ended as the default hook does it for others.
    pub(super) fn log_end(&self, ruby: &Ruby, child: &Child, status: Option<Value>) {
        let Some(status) = status else { return };
        let succeeded = status.funcall::<_, _, Value>("success?", ()).is_ok_and(Value::to_bool);
        let level = if succeeded { Level::Info } else { Level::Error };
        self.server.log(ruby, level, &format!("{child} reaped ({})", status.inspect()));
    }
}
