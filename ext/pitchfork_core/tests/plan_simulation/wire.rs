//! Channels: who holds an end, what is on its way, and what the monitor gets to hear.

use std::collections::VecDeque;

use pitchfork_core::children::{Pid, Token};
use pitchfork_core::message::{Order, Report};
use pitchfork_core::plan::Event;

use crate::process::Life;
use crate::world::{Happening, Line, World};

/// The channel between the monitor and one child.
#[derive(Debug, Default)]
pub struct Channel {
    /// The child's end lives as long as a process, or an order on its way, holds it.
    pub holders: usize,
    /// What the monitor has not read yet.
    pub reports: VecDeque<Report>,
    /// What the child has not read yet.
    pub orders: VecDeque<Order>,
    /// The monitor has dropped its end.
    pub deaf: bool,
    /// Who reads the orders.
    pub reader: Option<Pid>,
}

impl World {
    pub fn open(&mut self, token: Token, slot: u32) {
        if let Some(owner) = self.board.line(slot).token {
            self.violated(&format!("line {slot} of {owner:?} is given to {token:?}"));
        }
        *self.board.line_mut(slot) = Line { token: Some(token), ..Line::default() };
        // The monitor's own copy of the child's end.
        self.channels.insert(token, Channel { holders: 1, ..Channel::default() });
    }

    /// Sends an order that carries the child's end of a new channel.
    pub fn ask(&mut self, forker: Token, token: Token, order: Order) {
        if self.rng.chance(self.weather.send_fails) || !self.send(forker, order) {
            self.fail(token);
        }
    }

    /// The monitor could not start this child. It may drop the other end of the channel at once, or when it forgets
    /// the child.
    pub fn fail(&mut self, token: Token) {
        self.schedule(0, Happening::Fail(token));
        if self.rng.chance(500) {
            self.release(token);
        }
    }

    /// Whether somebody may read it.
    pub fn send(&mut self, to: Token, order: Order) -> bool {
        let Some(channel) = self.channels.get_mut(&to).filter(|channel| channel.holders > 0) else { return false };
        channel.orders.push_back(order);
        let reader = channel.reader;
        if let Some(pid) = reader {
            self.wake(pid);
        }
        true
    }

    /// Whether the monitor may hear it.
    pub fn say(&mut self, token: Token, report: Report) -> bool {
        let Some(channel) = self.channels.get_mut(&token).filter(|channel| !channel.deaf) else { return false };
        channel.reports.push_back(report);
        let delay = self.lasts(0, 5);
        self.schedule(delay, Happening::Deliver(token));
        true
    }

    pub fn release(&mut self, token: Token) {
        let Some(channel) = self.channels.get_mut(&token) else { return };
        channel.holders -= 1;
        if channel.holders > 0 {
            return;
        }
        let unread = std::mem::take(&mut channel.orders);
        if channel.deaf {
            self.channels.remove(&token);
        } else {
            let delay = self.lasts(0, 5);
            self.schedule(delay, Happening::HangUp(token));
        }
        for order in unread {
            if let Order::Spawn { token, .. } | Order::Promote { token, .. } = order {
                self.release(token);
            }
        }
    }

    /// The monitor reads one report.
    pub fn hear(&mut self, token: Token) -> bool {
        let report = self.channels.get_mut(&token).and_then(|channel| channel.reports.pop_front());
        if let Some(report) = report {
            self.feed(Event::Message(token, report));
        }
        report.is_some()
    }

    pub fn hear_out(&mut self, token: Token) {
        while self.hear(token) {}
    }

    pub fn hear_the_end(&mut self, token: Token) {
        self.hear_out(token);
        if self.channels.get(&token).is_some_and(|channel| !channel.deaf) {
            self.feed(Event::Closed(token));
        }
    }

    /// The monitor drops its end. It reads what is left first: a pid among it belongs to a child that nobody would
    /// find again.
    pub fn stop_listening_to(&mut self, token: Token) {
        let Some(channel) = self.channels.get_mut(&token) else { return };
        channel.deaf = true;
        let left = std::mem::take(&mut channel.reports);
        if channel.holders == 0 {
            self.channels.remove(&token);
        }
        for report in left {
            if let Report::Forked { pid } | Report::Registered { pid } = report {
                self.schedule(0, Happening::Die(pid, token));
            }
        }
    }

    /// The monitor looks after a dead process. What it said comes first.
    pub fn reap(&mut self, pid: Pid, again: bool) {
        let Some(token) = self.processes.get(&pid).filter(|process| process.dead).map(|process| process.token) else {
            return;
        };
        let parent = |life: &Life| matches!(life, Life::AfterFork { child, .. } if *child == pid);
        if self.processes.values().any(|process| process.token == token && parent(&process.life)) {
            // It is still the middle process's child.
            self.schedule(2, Happening::Reap(pid, again));
            return;
        }
        self.hear_out(token);
        let known = self.state.children().by_pid(pid).is_some();
        if known && self.rng.chance(self.weather.stolen) {
            self.processes.remove(&pid);
            self.stolen.insert(pid);
            let delay = self.rng.between(0, 500);
            self.schedule(delay, Happening::Vanish(token));
        } else if known || again {
            self.processes.remove(&pid);
            self.free_pids.push(pid);
            self.feed(Event::Exited { pid });
        } else {
            self.schedule(1_000, Happening::Reap(pid, true));
        }
    }
}
