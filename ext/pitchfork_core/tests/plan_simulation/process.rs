//! The life of a process: from a fork to its end.

use pitchfork_core::children::{Kind, Millis, Pid, Token};
use pitchfork_core::message::Report;
use pitchfork_core::plan::Kill;

use crate::world::{Happening, World};

/// How long the kernel may take to end a process.
pub const SLOWEST_DEATH: Millis = 9_000;

/// What a process is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs the callbacks that belong to a fork, and has not closed what it inherited.
    Callbacks,
    /// It boots the application, or runs its hooks.
    Hooks,
    /// It is a mold that collects garbage.
    Preparing,
    /// It waits for orders or requests.
    Idle,
    /// It has a request in hand.
    Serving,
    /// It waits for a middle process.
    Forking { middle: Pid, child: Token },
    /// It is a middle process that has not forked yet.
    BeforeFork { forker: Pid },
    /// It is a middle process that has not told of its fork yet.
    AfterFork { forker: Pid, child: Pid },
    /// It finishes.
    Leaving,
}

/// One process. A middle process bears the token of the child that it is to fork.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: Pid,
    pub token: Token,
    pub kind: Kind,
    pub slot: u32,
    pub life: Life,
    pub booted: bool,
    pub hung: bool,
    pub dead: bool,
    /// How many middle processes in a row have not done their work.
    pub broken: u32,
    /// Turns of an older epoch do not count.
    pub epoch: u64,
    /// The ends of channels that it has open.
    pub holds: Vec<Token>,
}

impl Process {
    pub fn is_middle(&self) -> bool {
        matches!(self.life, Life::BeforeFork { .. } | Life::AfterFork { .. })
    }

    pub fn is_reactor(&self) -> bool {
        self.kind == Kind::Reactor
    }

    pub fn accepts(&self) -> bool {
        let at_work = matches!(self.life, Life::Idle | Life::Serving | Life::Forking { .. });
        matches!(self.kind, Kind::Worker(_)) && !self.dead && at_work
    }
}

impl World {
    pub fn new_process(&mut self, token: Token, kind: Kind, slot: u32, life: Life, holds: Vec<Token>) -> Pid {
        let recycle = self.rng.chance(300);
        let pid = self.free_pids.pop().filter(|_| recycle).unwrap_or_else(|| {
            self.next_pid += 1;
            self.next_pid
        });
        for held in &holds {
            if let Some(channel) = self.channels.get_mut(held) {
                channel.holders += 1;
            }
        }
        let process = Process {
            pid,
            token,
            kind,
            slot,
            life,
            booted: false,
            hung: false,
            dead: false,
            broken: 0,
            epoch: 0,
            holds,
        };
        self.processes.insert(pid, process);
        pid
    }

    pub fn enter(&mut self, pid: Pid, life: Life, delay: Millis) {
        self.next_epoch += 1;
        let epoch = self.next_epoch;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.life = life;
            process.epoch = epoch;
            self.schedule(delay, Happening::Turn(pid, epoch));
        }
    }

    /// An order has come.
    pub fn wake(&mut self, pid: Pid) {
        let idle = self.processes.get(&pid).is_some_and(|process| process.life == Life::Idle && !process.hung);
        if idle {
            let delay = self.rng.between(0, 5);
            self.enter(pid, Life::Idle, delay);
        }
    }

    pub fn hang_if(&mut self, pid: Pid, per_mille: u64) {
        if self.rng.chance(per_mille)
            && let Some(process) = self.processes.get_mut(&pid)
        {
            process.hung = true;
        }
    }

    pub fn boot(&mut self, token: Token, slot: u32) {
        if self.rng.chance(self.weather.boot_fork_fails) {
            self.watch.boot_fork_failures += 1;
            self.fail(token);
            return;
        }
        let pid = self.new_process(token, Kind::Mold, slot, Life::Callbacks, vec![token]);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.booted = true;
        }
        self.say(token, Report::Forked { pid });
        self.release(token);
        let delay = self.lasts(1, 50);
        self.enter(pid, Life::Callbacks, delay);
    }

    /// The next thing in the life of a process.
    pub fn turn(&mut self, pid: Pid, epoch: u64) {
        let Some(process) = self.processes.get(&pid).filter(|process| process.epoch == epoch) else { return };
        if process.hung || process.dead {
            return;
        }
        let process = process.clone();
        if self.rng.chance(self.weather.crash) {
            self.die(pid);
            return;
        }
        match process.life {
            Life::Callbacks => self.register(&process),
            Life::Hooks => self.finish_hooks(&process),
            Life::Preparing => self.offer(&process),
            Life::Idle => self.idle(&process),
            Life::Serving => self.finish_request(&process),
            Life::BeforeFork { forker } => self.fork(&process, forker),
            Life::AfterFork { forker, child } => self.tell_of_fork(&process, forker, child),
            Life::Leaving => self.die(pid),
            Life::Forking { .. } => {}
        }
    }

    pub fn is_awaited(&self, process: &Process) -> bool {
        let line = self.board.line(process.slot);
        line.token == Some(process.token) && !line.disowned
    }

    fn register(&mut self, process: &Process) {
        let pid = process.pid;
        for inherited in process.holds.iter().filter(|held| **held != process.token) {
            self.release(*inherited);
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.holds = vec![process.token];
        }
        if let Some(channel) = self.channels.get_mut(&process.token) {
            channel.reader = Some(pid);
        }
        if !self.is_awaited(process) {
            self.die(pid);
            return;
        }
        if process.is_reactor() {
            // It has no hooks, and nothing to say before it is at work.
            self.offer(process);
            return;
        }
        if !self.say(process.token, Report::Registered { pid }) {
            self.die(pid);
            return;
        }
        let delay = if process.booted { self.lasts(100, 3_000) } else { self.lasts(1, 100) };
        self.enter(pid, Life::Hooks, delay);
        self.hang_if(pid, self.weather.hang_in_hooks);
    }

    fn finish_hooks(&mut self, process: &Process) {
        let pid = process.pid;
        if process.booted && self.rng.chance(self.weather.boot_fails) {
            self.die(pid);
        } else if process.kind == Kind::Mold && self.rng.chance(700) {
            self.say(process.token, Report::Preparing);
            let delay = self.lasts(10, 2_000);
            self.enter(pid, Life::Preparing, delay);
            self.hang_if(pid, self.weather.hang_in_preparation);
        } else {
            self.offer(process);
        }
    }

    fn offer(&mut self, process: &Process) {
        let pid = process.pid;
        let looks = self.rng.chance(500);
        if (looks && !self.is_awaited(process)) || !self.say(process.token, Report::Ready) {
            self.die(pid);
            return;
        }
        self.write_deadline(process, self.now + self.settings.hard_timeout);
        self.enter(pid, Life::Idle, 1);
        let crashes = if process.is_reactor() { self.weather.reactor_crashes } else { self.weather.crash_when_ready };
        if self.rng.chance(crashes) {
            let delay = self.rng.between(0, 300);
            self.schedule(delay, Happening::Die(pid, process.token));
        }
    }

    pub fn write_deadline(&mut self, process: &Process, deadline: Millis) {
        let line = self.board.line_mut(process.slot);
        if line.token == Some(process.token) {
            line.deadline = deadline;
        }
    }

    fn idle(&mut self, process: &Process) {
        let pid = process.pid;
        let is_worker = matches!(process.kind, Kind::Worker(_));
        self.write_deadline(process, self.now + self.settings.hard_timeout);
        let order = self.channels.get_mut(&process.token).and_then(|channel| channel.orders.pop_front());
        if let Some(order) = order {
            self.obey(process, order);
        } else if !self.is_awaited(process) {
            self.die(pid);
        } else if (is_worker || process.is_reactor()) && self.rng.chance(self.weather.lose_mind) {
            self.lose_mind(pid);
        } else if process.is_reactor() && self.rng.chance(self.weather.reactor_fails) {
            if self.rng.chance(500) { self.die(pid) } else { self.hang_if(pid, 1_000) }
        } else if is_worker {
            let delay = self.lasts(1, 300);
            self.enter(pid, Life::Serving, delay);
            self.hang_if(pid, self.weather.hang_in_request);
        } else {
            // A sign of life.
            let latest = self.settings.hard_timeout / 2;
            let delay = if process.is_reactor() { self.rng.between(1, latest) } else { latest };
            self.enter(pid, Life::Idle, delay);
            self.hang_if(pid, self.weather.hang_idle);
        }
    }

    fn lose_mind(&mut self, pid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.hung = true;
        for held in std::mem::take(&mut process.holds) {
            self.release(held);
        }
    }

    fn finish_request(&mut self, process: &Process) {
        self.write_deadline(process, self.now + self.settings.hard_timeout);
        let turn_unsafe = self.rng.chance(self.weather.turn_unsafe);
        let line = self.board.line_mut(process.slot);
        line.requests += 1;
        line.unsafe_to_fork |= turn_unsafe;
        if self.rng.chance(self.weather.condition) {
            self.say(process.token, Report::ConditionMet);
        }
        if self.rng.chance(self.weather.slow_client) {
            self.say(process.token, Report::ReactorWanted);
        }
        let delay = self.rng.between(1, self.pace.min(self.settings.hard_timeout / 2));
        self.enter(process.pid, Life::Idle, delay);
        self.hang_if(process.pid, self.weather.hang_idle);
        if self.channels.get(&process.token).is_some_and(|channel| !channel.orders.is_empty()) {
            self.wake(process.pid);
        }
    }

    pub fn leave(&mut self, pid: Pid, drain: bool) {
        let delay = if drain { self.lasts(50, 500) } else { self.lasts(1, 300) };
        if self.rng.chance(self.weather.ignore_leave) {
            self.hang_if(pid, 1_000);
        } else {
            self.enter(pid, Life::Leaving, delay);
        }
    }

    pub fn arrive(&mut self, pid: Pid, token: Token, kill: Kill) {
        let Some(process) = self.processes.get(&pid).filter(|process| process.token == token && !process.dead) else {
            return;
        };
        // The reactor ignores what it can.
        let (hung, reactor) = (process.hung, process.is_reactor());
        let deadly = kill == Kill::Kill || (kill == Kill::Overdue && !self.rng.chance(self.weather.survives_signal));
        if deadly {
            let slow = self.rng.chance(self.weather.slow_death);
            let delay = if slow { self.rng.between(500, SLOWEST_DEATH) } else { self.rng.between(0, 20) };
            self.schedule(delay, Happening::Die(pid, token));
        } else if kill != Kill::Overdue && !hung && !reactor {
            self.leave(pid, false);
        }
    }

    pub fn die(&mut self, pid: Pid) {
        let Some(process) = self.processes.get_mut(&pid).filter(|process| !process.dead) else { return };
        self.counts.deaths += 1;
        if let Life::BeforeFork { forker } | Life::AfterFork { forker, .. } = process.life {
            let middle = process.clone();
            if let Life::AfterFork { child, .. } = middle.life {
                self.recover(child);
            }
            self.end_middle(&middle, forker, true);
            return;
        }
        process.dead = true;
        if process.booted && matches!(process.life, Life::Callbacks | Life::Hooks | Life::Preparing) {
            self.watch.boot_failed = true;
        }
        for held in std::mem::take(&mut process.holds) {
            self.release(held);
        }
        let delay = self.lasts(0, 10);
        self.schedule(delay, Happening::Reap(pid, false));
    }
}
