//! What each action must be a sensible thing to do.

use pitchfork_core::children::{Child, Kind, Millis, Stage, Token};
use pitchfork_core::plan::{
    Action, BOOT_TIMEOUT, Event, INT_TIMEOUT, KILL_TIMEOUT, Kill, Level, PREPARE_TIMEOUT, Phase, SUSPENDED, View,
};
use pitchfork_core::refork::spacing;

use crate::watch::rate;
use crate::world::World;

/// The first pause of any back-off.
pub const FIRST_PAUSE: Millis = 100;
/// The longest pause of any back-off.
pub const LONGEST_PAUSE: Millis = 10_000;
/// So many failures of the monitor to fork a mold end the server.
const MAX_BOOT_FORK_FAILURES: u32 = 5;
/// One number is tried at most so often in a second: pauses of 100, 200 and 400 ms, and what is not a failure.
pub const TRIES_A_SECOND: usize = 7;
/// A mold has at most so many orders that it has not carried out.
const ORDERS: usize = 2;

impl World {
    pub fn check_action(&mut self, event: Event, action: &Action) {
        match *action {
            Action::Boot { .. } => self.check_boot(),
            Action::StartReactor { .. } => self.check_reactor_start(),
            Action::Conclude(token) => self.check_conclusion(token),
            Action::LogEnd(ref child) => self.check_hooks(child, child.kind == Kind::Reactor),
            Action::Departed(ref child) => self.check_hooks(child, child.kind != Kind::Reactor),
            Action::Promote { forker, generation, .. } => self.check_promotion(forker, generation),
            Action::Spawn { forker, token, kind, generation, .. } => {
                self.check_spawn(forker, kind, generation);
                self.watch.spawned.insert(token);
            }
            Action::Disown { slot } => {
                let token = self.board.line(slot).token;
                if let (Event::Tick, Some(token), true) = (event, token, self.is_running()) {
                    self.check_patience(token);
                }
                self.watch.disowned.extend(token);
                self.note_end(token);
            }
            Action::Current(mold) => self.check_replacement(mold),
            Action::Listen => {
                if std::mem::replace(&mut self.watch.listening, true) {
                    self.violated("listening begins twice");
                }
            }
            Action::Signal { token, kill, .. } => self.check_signal(token, kill),
            Action::Log(level, ref line) => {
                self.watch.spawn_limit_passed |= line.contains("consecutive failures to spawn");
                if line.contains("can't refork") {
                    self.watch.refork_owed = false;
                }
                if self.watch.calm && level == Level::Error && line.contains("scoreboard") && line.contains("taken") {
                    self.violated("the scoreboard is full though nothing goes wrong");
                }
            }
            Action::Exit(status) => self.check_exit(status),
            Action::HardTimeout(ref child) => {
                if matches!(child.kind, Kind::Mold | Kind::Reactor) {
                    self.violated(&format!("the hook for a hard timeout is called for {child}"));
                }
                self.check_patience(child.token);
            }
            Action::Forget { token, .. } => self.note_end(Some(token)),
            Action::Dismiss { .. } | Action::StopListening => {}
        }
    }

    fn check_boot(&mut self) {
        self.check_mold_start();
        if self.state.mold().is_some() {
            self.violated("the application is booted though there is a mold");
        }
        let untried = self.state.children().workers().find(|worker| {
            worker.is_ready() && self.board.fork_safe(worker.slot) && !self.watch.tried.contains(&worker.token)
        });
        if let Some(worker) = untried {
            self.violated(&format!("the application is booted though {worker} could be promoted"));
        }
    }

    fn check_promotion(&mut self, forker: Token, generation: u32) {
        self.check_mold_start();
        self.watch.promotions += 1;
        self.watch.refork_owed &= self.state.mold().is_none();
        self.watch.tried.insert(forker);
        // Its own deadline may strike in the same step.
        let fit = self.state.children().get(forker).is_some_and(|worker| {
            matches!(worker.stage, Stage::Ready | Stage::Killed)
                && matches!(worker.kind, Kind::Worker(_))
                && worker.generation + 1 == generation
                && self.board.fork_safe(worker.slot)
        });
        if !fit {
            self.violated("somebody unfit is promoted");
        }
    }

    fn check_mold_start(&mut self) {
        self.check_start();
        let now = self.now;
        if rate(&mut self.watch.mold_starts, now) > 8 + self.settings.slots as usize {
            self.violated("the plan spins: molds are tried too often");
        }
        if self.state.mold().is_none() && self.watch.lost_mold_at.is_some_and(|at| now < at + FIRST_PAUSE) {
            self.violated("the plan spins: the next mold is started without a pause");
        }
        let molds = self.state.children().iter().filter(|child| child.kind == Kind::Mold && !child.is_dismissed());
        let current = self.state.mold().map(|mold| mold.token);
        if molds.filter(|mold| Some(mold.token) != current).count() > 1 {
            self.violated("two molds are on their way at once");
        }
    }

    fn check_spawn(&mut self, forker: Token, kind: Kind, generation: u32) {
        self.check_start();
        let now = self.now;
        if rate(self.watch.spawns.entry(kind.code()).or_default(), now) > TRIES_A_SECOND {
            self.violated(&format!("the plan spins: {kind} is tried too often"));
        }
        let too_early = now < self.watch.failed_at + spacing(self.watch.spawn_failures, self.state.wanted());
        if self.watch.spawn_failures > 0 && too_early && self.is_running() {
            self.violated("many that fail together become a storm of forks");
        }
        let mold = self.state.children().get(forker).filter(|mold| mold.is_ready() || !self.is_running());
        if mold.is_none_or(|mold| mold.kind != Kind::Mold || mold.generation != generation) {
            self.violated(&format!("a {kind} is asked of somebody who is no mold"));
        }
        let wanted = match kind {
            Kind::Worker(nr) => nr < self.state.wanted(),
            Kind::Service => self.settings.service,
            Kind::Mold | Kind::Reactor => false,
        };
        if !wanted && (self.is_running() || kind == Kind::Service) {
            self.violated(&format!("a {kind} is asked for that nobody wants"));
        }
        let holder = self
            .processes
            .values()
            .find(|process| process.kind == kind && !process.dead && self.watch.adopted.contains(&process.token));
        if let Some(holder) = holder {
            self.violated(&format!("{:?} still lives and its place as {kind} is given away", holder.token));
        }
        let ordered = self
            .state
            .children()
            .iter()
            .filter(|child| child.stage == Stage::Requested && child.forker == Some(forker));
        if ordered.count() > ORDERS {
            self.violated("a mold is overloaded with orders");
        }
    }

    /// Whether the shutdown has just begun, with nobody to see to the queues.
    fn needs_a_drainer(&self) -> bool {
        self.state.phase() == Phase::Draining && !self.watch.able_before
    }

    pub fn check_start(&self) {
        if self.watch.phase_before != Some(Phase::Running) || !(self.is_running() || self.needs_a_drainer()) {
            self.violated("somebody is started after the shutdown began");
        }
        if self.watch.quiet {
            self.violated("somebody is started though all is well");
        }
    }

    fn check_signal(&mut self, token: Token, kill: Kill) {
        if !self.is_running() {
            return;
        }
        if self.watch.quiet {
            self.violated(&format!("{kill:?} is sent though all is well"));
        }
        if !matches!(kill, Kill::Overdue | Kill::Kill) {
            self.violated("a child is interrupted though the server runs");
        }
        if !self.watch.disowned.contains(&token) {
            self.check_patience(token);
        }
        let kind = self.state.children().get(token).map(|child| child.kind);
        if kind == Some(Kind::Reactor) && kill != Kill::Kill {
            self.violated("the reactor is sent what it ignores");
        }
        // A booted mold can be overdue in the very step in which it is heard to be ready.
        let never_current = self.watch.mold_before != Some(token);
        let booted = |child: &Child| child.kind == Kind::Mold && child.forker.is_none();
        if never_current && self.state.children().get(token).is_some_and(booted) {
            self.watch.boot_failed = true;
        }
    }

    /// A child is given up only when it has had its time, in which the monitor was not stopped.
    fn check_patience(&self, token: Token) {
        let Some(child) = self.state.children().get(token) else { return };
        let overdue = (1..self.now).contains(&self.board.deadline(child.slot)) && child.ready_at.is_some();
        let judged = self.stopped_until == 0 || self.now >= self.stopped_until + SUSPENDED;
        if overdue && judged {
            return;
        }
        let Some((stage, since)) = self.watch.stages.get(&token).copied() else {
            if !self.watch.closed.contains(&token) {
                self.violated(&format!("{child} is killed while it does its work"));
            }
            return;
        };
        let patience = match stage {
            Stage::Starting if child.forker.is_none() && child.kind == Kind::Mold => BOOT_TIMEOUT,
            Stage::Requested | Stage::Starting => self.settings.spawn_timeout,
            Stage::Preparing => PREPARE_TIMEOUT,
            Stage::Leaving => self.settings.hard_timeout.min(INT_TIMEOUT),
            Stage::Killed => KILL_TIMEOUT,
            Stage::Ready | Stage::Abandoned => 0,
        };
        if self.felt() < since + patience {
            self.violated(&format!("{child} is given up too early"));
        }
    }

    /// A mold that lives goes only when a worker has come up from its successor.
    fn check_replacement(&mut self, new: Token) {
        self.watch.tried.clear();
        self.watch.boot_fork_failures = 0;
        let old = self.watch.mold_before.and_then(|old| self.state.children().get(old));
        if let Some(old) = old.filter(|old| old.token != new)
            && self.state.wanted() > 0
            && !self.watch.proven.contains(&new)
        {
            self.violated(&format!("{old} is replaced by a mold that has not proven itself"));
        }
    }

    fn check_exit(&mut self, status: i32) {
        let left = self
            .processes
            .values()
            .find(|process| !process.dead && !process.is_middle() && self.watch.known.contains(&process.token));
        if let Some(process) = left {
            self.violated(&format!("{process:?} outlives the server"));
        }
        let no_mold = self.watch.boot_failed || self.watch.boot_fork_failures >= MAX_BOOT_FORK_FAILURES;
        let gave_up = no_mold || self.watch.deaf_listeners || self.watch.spawn_limit_passed;
        match status {
            0 if self.watch.shutdown_since.is_some() => {}
            1 if gave_up => self.counts.give_ups += 1,
            _ => self.violated(&format!("the server ends with status {status} for no reason")),
        }
    }
}
