//! What the checks remember from step to step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pitchfork_core::children::{Kind, Millis, Stage, Token};
use pitchfork_core::message::Report;
use pitchfork_core::plan::{Event, Phase, Signal};

use crate::weather::Weather;
use crate::world::World;

/// What the checks remember.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Watch {
    /// For how long the monitor has been stopped in all.
    pub stopped: Millis,
    /// An application did not boot.
    pub boot_failed: bool,
    /// A listener could not begin to listen.
    pub deaf_listeners: bool,
    /// How many molds in a row the monitor could not fork.
    pub boot_fork_failures: u32,
    /// So many children in a row did not come up that the server had to end.
    pub spawn_limit_passed: bool,
    /// How many children of molds in a row did not come up, counted anew, and when the last of them failed.
    pub spawn_failures: u32,
    pub failed_at: Millis,
    /// Children of molds of which nothing was heard yet.
    pub spawned: BTreeSet<Token>,
    /// Nothing goes wrong any more.
    pub calm: bool,
    /// Nothing needs to be done any more.
    pub quiet: bool,
    /// Some processes took long to die.
    pub slow_deaths: bool,
    /// Somebody may have outlived the first signal of a kill.
    pub stubborn: bool,
    /// Some things took longer than they should.
    pub late: bool,
    /// How many molds were asked of workers.
    pub promotions: u64,
    /// A signal has asked for a refork that has not begun.
    pub refork_owed: bool,
    pub listening: bool,
    /// Children that were ready once.
    pub adopted: BTreeSet<Token>,
    /// Children of whose pid the monitor has been told.
    pub known: BTreeSet<Token>,
    /// Children that were given up.
    pub disowned: BTreeSet<Token>,
    /// Children whose channel was closed.
    pub closed: BTreeSet<Token>,
    /// Molds of which a worker was ready once.
    pub proven: BTreeSet<Token>,
    /// Workers that were promoted since there was a new mold.
    pub tried: BTreeSet<Token>,
    /// Since when a child that is not ready has been at its stage.
    pub stages: BTreeMap<Token, (Stage, Millis)>,
    /// A worker has asked for a reactor.
    pub reactor_wanted: bool,
    /// Since when there is none, and none on its way.
    pub without_reactor_since: Option<Millis>,
    pub reactor_starts: VecDeque<Millis>,
    pub lost_mold_at: Option<Millis>,
    pub without_prospect_since: Option<Millis>,
    pub shutdown_since: Option<Millis>,
    pub interrupted_since: Option<Millis>,
    pub ticks: VecDeque<Millis>,
    pub mold_starts: VecDeque<Millis>,
    pub spawns: BTreeMap<u32, VecDeque<Millis>>,
    pub mold_before: Option<Token>,
    pub phase_before: Option<Phase>,
    /// Some worker could take requests, or was about to.
    pub able_before: bool,
    pub children_before: usize,
}

/// How often something has happened within the last second.
pub fn rate(times: &mut VecDeque<Millis>, now: Millis) -> usize {
    times.push_back(now);
    while times.front().is_some_and(|at| at + 1_000 <= now) {
        times.pop_front();
    }
    times.len()
}

impl World {
    /// Time as the monitor feels it.
    pub fn felt(&self) -> Millis {
        self.now - (self.watch.stopped - self.stopped_until.saturating_sub(self.now))
    }

    pub fn change_weather(&mut self, weather: Weather) {
        self.watch.slow_deaths |= weather.slow_death > 0;
        self.watch.stubborn |= weather.survives_signal > 0;
        self.watch.late |= weather.late > 0;
        self.weather = weather;
    }

    pub fn before_step(&mut self, event: Event) {
        self.watch.mold_before = self.state.mold().map(|mold| mold.token);
        self.watch.phase_before = Some(self.state.phase());
        let able = |stage| matches!(stage, Stage::Requested | Stage::Starting | Stage::Ready);
        self.watch.able_before = self.state.children().workers().any(|worker| able(worker.stage));
        self.watch.children_before = self.state.children().iter().count();
        let Event::Signal(signal) = event else { return };
        let felt = self.felt();
        match signal {
            Signal::Usr2 if self.state.phase() == Phase::Running => self.watch.refork_owed = true,
            Signal::Int => {
                self.watch.shutdown_since.get_or_insert(felt);
                self.watch.interrupted_since.get_or_insert(felt);
            }
            Signal::Quit | Signal::Term => {
                self.watch.shutdown_since.get_or_insert(felt);
            }
            _ => {}
        }
    }

    /// What an event has told the monitor.
    pub fn note_event(&mut self, event: Event) {
        match event {
            Event::Closed(token) => {
                self.watch.closed.insert(token);
            }
            Event::Failed(token) if self.board.0.iter().any(|line| line.token == Some(token) && line.booted) => {
                self.watch.tried.clear();
            }
            Event::CannotListen if self.state.phase() == Phase::Running => {
                self.violated("the server goes on though nobody can connect");
            }
            Event::Message(token, report) => self.note_report(token, report),
            _ => {}
        }
    }

    /// A child is gone, or given up.
    pub fn note_end(&mut self, token: Option<Token>) {
        let Some(token) = token.filter(|token| self.watch.spawned.remove(token)) else { return };
        let dismissed = self.watch.stages.get(&token).is_some_and(|(stage, _)| *stage == Stage::Leaving);
        if !dismissed {
            self.watch.spawn_failures += 1;
            self.watch.failed_at = self.now;
        }
    }

    fn note_report(&mut self, token: Token, report: Report) {
        self.watch.reactor_wanted |= report == Report::ReactorWanted;
        let Some(child) = self.state.children().get(token) else { return };
        if child.pid.is_some() {
            self.watch.known.insert(token);
        }
        if report == Report::Ready && child.ready_at == Some(self.now) {
            self.watch.spawned.remove(&token);
            self.watch.spawn_failures = 0;
        }
        if report != Report::Ready || !child.is_ready() || !self.watch.adopted.insert(token) {
            return;
        }
        let kind = child.kind;
        if let Kind::Worker(_) = kind {
            self.watch.proven.extend(child.forker);
        }
        let adopted = &self.watch.adopted;
        let twin = self.processes.values().find(|process| {
            process.kind == kind && process.token != token && process.accepts() && adopted.contains(&process.token)
        });
        if let (Kind::Worker(_) | Kind::Service, Some(twin)) = (kind, twin) {
            self.violated(&format!("{token:?} and {:?} both serve as {kind:?}", twin.token));
        }
    }

    /// Takes down how long everybody has been at a stage.
    pub fn note_stages(&mut self) {
        let felt = self.felt();
        let children = self.state.children();
        self.watch.stages.retain(|token, _| children.get(*token).is_some_and(|child| !child.is_ready()));
        for child in children.iter().filter(|child| !child.is_ready()) {
            let entry = self.watch.stages.entry(child.token).or_insert((child.stage, felt));
            if entry.0 != child.stage {
                *entry = (child.stage, felt);
            }
        }
    }
}
