//! The sibling fork: a forker, a middle process, and the child.

use pitchfork_core::children::{Kind, Millis, Pid, Token};
use pitchfork_core::message::{Order, Report};

use crate::process::{Life, Process};
use crate::world::{Happening, World};

/// How long a forker waits for a middle process.
const PATIENCE: Millis = 5_000;

impl World {
    pub fn obey(&mut self, process: &Process, order: Order) {
        let (token, kind, slot) = match order {
            Order::Spawn { token, kind, slot, .. } => (token, kind, slot),
            Order::Promote { token, slot, .. } => (token, Kind::Mold, slot),
            // It stays for the others.
            Order::Leave { drain: true } if process.is_reactor() => {
                self.hang_if(process.pid, self.weather.ignore_leave);
                self.enter(process.pid, Life::Idle, self.settings.hard_timeout / 2);
                return;
            }
            Order::Conclude => {
                self.leave(process.pid, true);
                return;
            }
            Order::Leave { drain } => {
                self.write_deadline(process, 0);
                self.leave(process.pid, drain);
                return;
            }
            // The plan does not know of logs.
            Order::ReopenLogs => return,
        };
        // The end of the new channel that came with the order is the forker's own now.
        if let Some(process) = self.processes.get_mut(&process.pid) {
            process.holds.push(token);
        }
        let is_worker = process.kind != Kind::Mold;
        let unsafe_to_fork = is_worker && self.board.line(process.slot).unsafe_to_fork;
        let unsafe_to_fork = unsafe_to_fork || (is_worker && self.rng.chance(self.weather.refuse));
        if unsafe_to_fork {
            self.board.line_mut(process.slot).unsafe_to_fork = true;
        }
        if unsafe_to_fork || self.rng.chance(self.weather.fork_fails) {
            self.close_after_fork(process.pid, token, Some(unsafe_to_fork));
            return;
        }
        let held = vec![token, process.token];
        let middle = self.new_process(token, kind, slot, Life::BeforeFork { forker: process.pid }, held);
        self.write_deadline(process, self.now + self.settings.spawn_timeout + PATIENCE);
        if let Some(process) = self.processes.get_mut(&process.pid) {
            process.life = Life::Forking { middle, child: token };
        }
        let delay = self.lasts(1, 20);
        self.enter(middle, Life::BeforeFork { forker: process.pid }, delay);
        // The forker loses its patience.
        self.schedule(PATIENCE, Happening::Die(middle, token));
    }

    /// What a forker does when its order is carried out, or has failed.
    fn close_after_fork(&mut self, forker: Pid, child: Token, failed: Option<bool>) {
        let Some(process) = self.processes.get_mut(&forker) else { return };
        process.holds.retain(|held| *held != child);
        let process = process.clone();
        if let Some(unsafe_to_fork) = failed {
            self.say(process.token, Report::SpawnFailed { token: child, unsafe_to_fork });
        }
        self.release(child);
        self.write_deadline(&process, self.now + self.settings.hard_timeout);
        self.enter(forker, Life::Idle, 1);
    }

    pub fn fork(&mut self, middle: &Process, forker: Pid) {
        if self.rng.chance(self.weather.middle_dies) {
            self.die(middle.pid);
            return;
        }
        let child = self.new_process(middle.token, middle.kind, middle.slot, Life::Callbacks, middle.holds.clone());
        let delay = self.lasts(0, 20);
        self.enter(child, Life::Callbacks, delay);
        self.hang_if(child, self.weather.hang_in_callback);
        let delay = self.lasts(0, 10);
        self.enter(middle.pid, Life::AfterFork { forker, child }, delay);
        if self.rng.chance(self.weather.middle_dies) {
            let delay = self.rng.between(0, 10);
            self.schedule(delay, Happening::Die(middle.pid, middle.token));
        }
    }

    pub fn tell_of_fork(&mut self, middle: &Process, forker: Pid, child: Pid) {
        if !self.say(middle.token, Report::Forked { pid: child }) {
            // Nobody waits for the child, and it may be stuck: whoever forked it is the last to know its pid.
            self.die(child);
        }
        self.end_middle(middle, forker, false);
    }

    pub fn end_middle(&mut self, middle: &Process, forker: Pid, killed: bool) {
        self.processes.remove(&middle.pid);
        for held in &middle.holds {
            self.release(*held);
        }
        let waits = Life::Forking { middle: middle.pid, child: middle.token };
        let Some(process) = self.processes.get_mut(&forker).filter(|process| process.life == waits && !process.dead)
        else {
            return;
        };
        process.broken = if killed { process.broken + 1 } else { 0 };
        let corrupted = process.broken > 1 && process.kind == Kind::Mold;
        self.close_after_fork(forker, middle.token, killed.then_some(false));
        if corrupted {
            self.die(forker);
        }
    }

    /// A child of whose pid nobody ever hears cannot be helped if it also hangs, so it does not.
    pub fn recover(&mut self, child: Pid) {
        let Some(process) = self.processes.get_mut(&child).filter(|process| process.hung && !process.dead) else {
            return;
        };
        process.hung = false;
        let life = process.life;
        self.enter(child, life, 1);
    }
}
