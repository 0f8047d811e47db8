//! Keeping the reactor, once there has been something for it to do: forked by the monitor itself, and nobody's concern
//! but its own.

use super::{Action, Backoff, Child, Kind, Millis, REACTOR_SLOTS, STABLE_AFTER, Turn};

/// What the plan remembers of reactors.
#[derive(Clone, Debug)]
pub(super) struct Reactor {
    /// Whether there has ever been something for one to do.
    pub(super) wanted: bool,
    pub(super) backoff: Backoff,
    /// At a stop: when even the last of those that may need it have had their time.
    pub(super) needed_until: Option<Millis>,
    /// Whether it was told that nobody else is left.
    concluded: bool,
    /// The lines of the scoreboard that are its own.
    pub(super) free_slots: Vec<u32>,
}

impl Default for Reactor {
    fn default() -> Self {
        let free_slots = (0..REACTOR_SLOTS).rev().collect();
        Self { wanted: false, backoff: Backoff::default(), needed_until: None, concluded: false, free_slots }
    }
}

impl Turn<'_> {
    pub(super) fn keep_reactor(&mut self) {
        let state = &*self.state;
        let missing = state.reactor.wanted && state.children.reactor().is_none();
        let missing = missing && state.reactor.needed_until.is_none_or(|end| self.now < end);
        // The lines may all be taken by those that are slow to die; the end of one of them is an event.
        if !missing || state.reactor.free_slots.is_empty() || !state.reactor.backoff.is_over(self.now) {
            return;
        }
        if let Some(reactor) = self.enter(Kind::Reactor, 0, None, self.state.settings.spawn_timeout) {
            self.actions.push(Action::StartReactor { token: reactor.token, slot: reactor.slot });
        }
    }

    /// Tells the reactor that it is the last one, at a stop: until then others may need it.
    pub(super) fn conclude(&mut self) {
        if self.state.reactor.concluded {
            return;
        }
        if let Some(token) = self.state.children.reactor().map(|reactor| reactor.token) {
            self.state.reactor.concluded = true;
            self.actions.push(Action::Conclude(token));
        }
    }

    /// Also at a stop it should have lasted, until nobody else is left.
    pub(super) fn account_for_reactor(&mut self, reactor: &Child) {
        if reactor.ready_at.is_some_and(|at| self.now >= at + STABLE_AFTER) {
            self.state.reactor.backoff.succeed();
        } else {
            self.state.reactor.backoff.fail(self.now);
        }
    }
}
