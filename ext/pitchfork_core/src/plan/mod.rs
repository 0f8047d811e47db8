//! The monitor's decisions, as one pure function: [`step`].
//!
//! It sees no clock, no process and no socket. Whatever happens reaches it as an [`Event`], whatever shall be done
//! leaves it as [`Action`]s, and the loops around it translate. So any order of crashes, late messages and signals
//! can be played through in a test.
//!
//! Events only record what is known; what to do about it is worked out anew after each of them, from the state
//! alone (`reconcile`). So no decision depends on having seen the right event at the right time.

mod deadlines;
mod events;
mod molds;
mod reactor;
mod service;
mod shutdown;
mod terms;
mod workers;

use std::collections::{BTreeMap, BTreeSet};

use crate::children::{Child, Children, Kind, Millis, Pid, Stage, Token};
use crate::message::Report;
use crate::refork::{Backoff, STABLE_AFTER, spacing};
use reactor::Reactor;
pub use terms::{Action, Event, Kill, Level, Settings, Signal, View};

/// A mold that has not booted its application by then is given up.
pub const BOOT_TIMEOUT: Millis = 600_000;
/// A mold that has not prepared itself by then is given up. `spawn_timeout` does not bound it: collections of a
/// large heap take longer than a hook should.
pub const PREPARE_TIMEOUT: Millis = 60_000;
/// How long the kernel may take to end a killed process before the signal is repeated.
pub const KILL_TIMEOUT: Millis = 5_000;
/// How long children may take to end at an immediate shutdown before they are killed.
pub const INT_TIMEOUT: Millis = 2_000;
/// A pause between two steps beyond this means that this process itself was stopped, or its machine; nobody's
/// deadline can be judged by it.
pub const SUSPENDED: Millis = 5_000;
/// A mold forks one child at a time. One request in hand and one waiting keeps it busy, and lets the deadline of a
/// spawn measure the spawn rather than the queue before it.
const SPAWNS_IN_FLIGHT: usize = 2;
/// So many times in a row the monitor may fail to fork a mold before it gives up.
const MAX_BOOT_FORK_FAILURES: u32 = 5;
/// Lines of the scoreboard beyond those for workers: the mold, a candidate, the service, old ones that are leaving, and
/// the reactor's.
const OTHER_SLOTS: u32 = 10 + REACTOR_SLOTS;
/// Lines of the scoreboard that nobody else may take: the reactor's, and that of one that is still on its way out.
const REACTOR_SLOTS: u32 = 2;

/// Whether the server is on its way up, or on its way down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Serving, or about to.
    Running,
    /// Finishing the work in hand.
    Draining,
    /// Stopping without waiting for anybody.
    Stopping,
    /// Nothing is left.
    Over,
}

/// A mold on its way to replace, or to become, the current one.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    token: Token,
    proof: Proof,
}

/// How far a ready candidate has got with proving that workers come up from it.
#[derive(Clone, Copy, Debug)]
enum Proof {
    /// Nothing done yet.
    Owed,
    /// The worker of this number was dismissed to make room.
    Vacating(u32),
    /// This worker was asked of it.
    Asked(Token),
}

/// Everything the monitor knows.
#[derive(Clone, Debug)]
pub struct State {
    settings: Settings,
    phase: Phase,
    children: Children,
    wanted: u32,
    mold: Option<Token>,
    candidate: Option<Candidate>,
    refork_queued: bool,
    condition_backoff_until: Millis,
    mold_backoff: Backoff,
    boot_fork_failures: u32,
    worker_backoffs: BTreeMap<u32, Backoff>,
    service_backoff: Backoff,
    reactor: Reactor,
    /// How many children in a row have failed to come up.
    spawn_errors: u32,
    /// Until then nobody is asked for, because of those.
    spawn_pause: Millis,
    passed_over: BTreeSet<Token>,
    listening: bool,
    exit_status: i32,
    next_token: u64,
    free_slots: Vec<u32>,
    last_step: Option<Millis>,
    judge_from: Millis,
}

/// Takes in one event and decides what follows from it.
pub fn step(state: &mut State, event: Event, view: &dyn View, now: Millis) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut turn = Turn { state, view, now, actions: &mut actions };
    turn.forgive_suspension();
    turn.take_in(event);
    // Only then has all been read that children have said in time: the monitor may have been busy with a hook.
    if event == Event::Tick {
        turn.enforce_deadlines();
    }
    turn.reconcile();
    actions
}

/// One call of [`step`]: the state, what it may look at, and what it has decided so far.
struct Turn<'t> {
    state: &'t mut State,
    view: &'t dyn View,
    now: Millis,
    actions: &'t mut Vec<Action>,
}

impl State {
    /// A server of which nothing has been started yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            phase: Phase::Running,
            children: Children::default(),
            wanted: settings.workers,
            mold: None,
            candidate: None,
            refork_queued: false,
            condition_backoff_until: 0,
            mold_backoff: Backoff::default(),
            boot_fork_failures: 0,
            worker_backoffs: BTreeMap::new(),
            service_backoff: Backoff::default(),
            reactor: Reactor::default(),
            spawn_errors: 0,
            spawn_pause: 0,
            passed_over: BTreeSet::new(),
            listening: false,
            exit_status: 0,
            next_token: 1,
            free_slots: (REACTOR_SLOTS..settings.slots).rev().collect(),
            last_step: None,
            judge_from: 0,
        }
    }

    /// The table of children.
    #[must_use]
    pub fn children(&self) -> &Children {
        &self.children
    }

    /// The way up or down.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// How many workers there shall be.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.wanted
    }

    /// The mold that workers come from, if one is alive.
    #[must_use]
    pub fn mold(&self) -> Option<&Child> {
        self.mold.and_then(|token| self.children.get(token))
    }

    /// Whether there is a reactor that takes connections.
    #[must_use]
    pub fn has_reactor(&self) -> bool {
        let at_work = |child: &Child| child.ready_at.is_some() && matches!(child.stage, Stage::Ready | Stage::Leaving);
        self.children.reactor().is_some_and(at_work)
    }

    /// Whether all wanted workers are ready.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unavailable() == 0
    }

    /// Whether a refork, or the search for a mold, is under way.
    #[must_use]
    pub fn is_reforking(&self) -> bool {
        self.candidate.is_some() || self.children.workers().any(|worker| self.is_outdated(worker))
    }

    /// How many workers may be missing at once while they are replaced.
    #[must_use]
    pub fn max_unavailable(&self) -> u32 {
        self.settings.max_unavailable.unwrap_or_else(|| self.wanted.div_ceil(10)).max(1)
    }

    /// How many of the wanted numbers have no ready worker.
    #[must_use]
    pub fn unavailable(&self) -> u32 {
        let ready = self.children.workers().filter(|worker| worker.is_ready());
        let ready = ready.filter(|worker| worker.occupies().is_some_and(|nr| nr < self.wanted)).count();
        self.wanted.saturating_sub(u32::try_from(ready).unwrap_or(u32::MAX))
    }

    /// When [`step`] has to be called again even if nothing happens. Never `now` or earlier: whatever was due has
    /// been dealt with, and whatever waits for somebody waits for an event.
    #[must_use]
    pub fn next_wake(&self, now: Millis) -> Option<Millis> {
        let deadlines = self.children.iter().filter_map(|child| child.deadline);
        let backoffs =
            self.worker_backoffs.values().chain([&self.mold_backoff, &self.service_backoff, &self.reactor.backoff]);
        let pauses = backoffs.map(Backoff::not_before).chain([self.spawn_pause]);
        deadlines.chain(pauses).filter(|&at| at > now).min()
    }

    fn is_outdated(&self, child: &Child) -> bool {
        self.mold.is_some() && child.forker != self.mold
    }
}

impl Turn<'_> {
    fn reconcile(&mut self) {
        if self.state.phase == Phase::Running {
            // First, so that nobody who has to go is counted on.
            self.dismiss_surplus();
            self.look_for_a_mold();
            self.start_queued_refork();
            self.prove_candidate();
            self.dismiss_outdated();
            self.keep_service();
            self.keep_reactor();
            self.fill_vacancies();
        }
        // Not `else`: looking for a mold in vain ends the server.
        if self.state.phase != Phase::Running {
            self.wind_down();
        }
    }

    fn log(&mut self, level: Level, line: String) {
        self.actions.push(Action::Log(level, line));
    }

    /// Adds a child that is about to be asked for, if the scoreboard has a line left.
    fn enter(&mut self, kind: Kind, generation: u32, forker: Option<Token>, patience: Millis) -> Option<Child> {
        let Some(slot) = self.free_slots(kind).pop() else {
            self.log(Level::Error, format!("all {} lines of the scoreboard are taken", self.state.settings.slots));
            return None;
        };
        let token = Token(self.state.next_token);
        self.state.next_token += 1;
        let child = Child {
            token,
            kind,
            generation,
            slot,
            forker,
            pid: None,
            stage: Stage::Requested,
            deadline: Some(self.now + patience),
            ready_at: None,
        };
        self.state.children.insert(child.clone());
        Some(child)
    }

    fn free_slots(&mut self, kind: Kind) -> &mut Vec<u32> {
        match kind {
            Kind::Reactor => &mut self.state.reactor.free_slots,
            _ => &mut self.state.free_slots,
        }
    }

    /// Takes a child out of the table, and draws the consequences.
    fn remove(&mut self, token: Token) -> Option<Child> {
        let child = self.state.children.remove(token)?;
        self.free_slots(child.kind).push(child.slot);
        self.actions.push(Action::Forget { token, slot: child.slot, pid: child.pid });
        self.state.passed_over.remove(&token);
        if child.stage != Stage::Abandoned {
            self.account_for(&child);
        }
        Some(child)
    }

    /// Gives up a spawn whose pid is not known. It stays in the table, so that it can be killed if it turns up.
    fn abandon(&mut self, token: Token) {
        let patience = self.state.settings.spawn_timeout;
        let Some(child) = self.state.children.get_mut(token) else { return };
        child.stage = Stage::Abandoned;
        child.deadline = Some(self.now + patience);
        let child = child.clone();
        self.actions.push(Action::Disown { slot: child.slot });
        self.account_for(&child);
    }

    /// What the end of a child, or of the hope for it, means for what comes next.
    fn account_for(&mut self, child: &Child) {
        match child.kind {
            Kind::Worker(nr) => self.account_for_worker(child, nr),
            Kind::Mold => self.account_for_mold(child),
            Kind::Service => self.account_for_service(child),
            // Its failures are nobody else's.
            Kind::Reactor => return self.account_for_reactor(child),
        }
        // A promotion of which nothing came is no failure to spawn: the worker was busy, or refused.
        let was_forked = child.pid.is_some() || child.kind != Kind::Mold;
        if child.ready_at.is_none() && child.stage != Stage::Leaving && was_forked {
            self.count_spawn_error();
        }
    }

    /// Each child has its own pauses, but many that fail together must not become a storm of forks either.
    fn count_spawn_error(&mut self) {
        self.state.spawn_errors = self.state.spawn_errors.saturating_add(1);
        let errors = self.state.spawn_errors;
        self.state.spawn_pause = self.now + spacing(errors, self.state.wanted);
        if self.state.settings.max_spawn_errors.is_some_and(|most| errors > most) {
            self.give_up(&format!(
                "{errors} consecutive failures to spawn children, aborting - is a hook broken that runs in new children?"
            ));
        }
    }

    fn may_spawn(&self) -> bool {
        self.now >= self.state.spawn_pause
    }

    /// Whether a child never came up, or not for long.
    fn has_failed(&self, child: &Child) -> bool {
        match child.ready_at {
            None => child.stage != Stage::Leaving,
            Some(at) => child.is_ready() && self.now < at + STABLE_AFTER,
        }
    }

    /// Tells a child to finish and go.
    fn dismiss(&mut self, token: Token, drain: bool) {
        let Some(child) = self.state.children.get_mut(token) else { return };
        let end = self.state.reactor.needed_until.filter(|_| child.kind == Kind::Reactor);
        let deadline = end.unwrap_or(self.now + self.state.settings.hard_timeout);
        child.stage = Stage::Leaving;
        child.deadline = Some(deadline);
        self.actions.push(Action::Dismiss { token, drain });
    }
}
