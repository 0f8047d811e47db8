//! What must hold after each step, whatever happens.

use std::collections::BTreeSet;

use pitchfork_core::children::{Child, Kind, Millis, Stage};
use pitchfork_core::plan::{Action, Event, INT_TIMEOUT, KILL_TIMEOUT, Phase};

use crate::actions::{LONGEST_PAUSE, TRIES_A_SECOND};
use crate::process::SLOWEST_DEATH;
use crate::watch::rate;
use crate::world::{TICK, World};

impl World {
    pub fn is_running(&self) -> bool {
        self.state.phase() == Phase::Running
    }

    /// How many of the wanted numbers have no ready worker, counted anew.
    pub fn missing(&self) -> u32 {
        let ready = self.state.children().iter().filter(|child| child.is_ready());
        let numbers = ready.filter_map(|child| match child.kind {
            Kind::Worker(nr) if nr < self.state.wanted() => Some(nr),
            _ => None,
        });
        let numbers: BTreeSet<u32> = numbers.collect();
        self.state.wanted() - u32::try_from(numbers.len()).unwrap_or(u32::MAX)
    }

    pub fn after_step(&mut self, event: Event, actions: &[Action]) {
        self.note_event(event);
        for action in actions {
            self.check_action(event, action);
        }
        self.check_amount(event, actions);
        self.check_dismissals(actions);
        self.check_table(event);
        self.check_search_for_a_mold();
        self.check_reactors();
        self.check_way_down();
        self.note_stages();
    }

    /// No action may come more often than the children and the clock account for.
    fn check_amount(&mut self, event: Event, actions: &[Action]) {
        let now = self.now;
        let wake = self.state.next_wake(now);
        if wake.is_some_and(|wake| wake <= now) {
            self.violated("the plan spins: it wants to be called again at once");
        }
        let children = self.watch.children_before + self.state.children().iter().count();
        if actions.len() > 10 + 4 * children {
            self.violated(&format!("{} actions in one step for {children} children", actions.len()));
        }
        let limit = 5 + TRIES_A_SECOND * self.settings.slots as usize;
        if event == Event::Tick && rate(&mut self.watch.ticks, now) > limit {
            self.violated("the plan spins: it wants to be called too often");
        }
    }

    /// Whoever is replaced must not leave more numbers empty than allowed, and nobody dismisses the mold.
    fn check_dismissals(&self, actions: &[Action]) {
        if !self.is_running() {
            return;
        }
        let mold = self.state.mold().map(|mold| mold.token);
        for action in actions {
            let Action::Dismiss { token, .. } = action else { continue };
            if self.watch.quiet {
                self.violated("somebody is dismissed though all is well");
            }
            if Some(*token) == mold {
                self.violated("the only mold is dismissed");
            }
            let nr = self.state.children().get(*token).and_then(Child::occupies);
            if nr.is_none_or(|nr| nr >= self.state.wanted()) {
                continue;
            }
            let most = self.settings.max_unavailable.unwrap_or_else(|| self.state.wanted().div_ceil(10)).max(1);
            if self.missing() > most {
                self.violated(&format!(
                    "{} workers are missing, {most} may be while some are replaced",
                    self.missing()
                ));
            }
        }
    }

    fn check_table(&self, event: Event) {
        let mut ready = vec![false; self.settings.slots as usize];
        for child in self.state.children().iter() {
            // Until the next tick one may have passed.
            let passed = |deadline| event == Event::Tick && deadline <= self.now;
            if child.stage != Stage::Ready && child.deadline.is_none_or(passed) {
                self.violated(&format!("{child} has no deadline ahead of it"));
            }
            let given_up = matches!(child.stage, Stage::Abandoned | Stage::Killed);
            if !given_up && self.watch.disowned.contains(&child.token) {
                self.violated(&format!("{child} was abandoned and is adopted"));
            }
            if let (Stage::Ready, Kind::Worker(nr)) = (child.stage, child.kind)
                && std::mem::replace(&mut ready[nr as usize], true)
            {
                self.violated(&format!("two workers are ready as number {nr}"));
            }
        }
    }

    /// Without a mold, somebody is on the way to become one, or a pause ends soon.
    fn check_search_for_a_mold(&mut self) {
        if self.watch.mold_before.is_some() && self.state.mold().is_none() {
            self.watch.lost_mold_at = Some(self.now);
        }
        let children = self.state.children();
        let searching = self.is_running()
            && self.state.mold().is_none()
            && !self.state.is_reforking()
            && !children.workers().any(|worker| worker.stage == Stage::Starting);
        if !searching {
            self.watch.without_prospect_since = None;
            return;
        }
        let felt = self.felt();
        let since = *self.watch.without_prospect_since.get_or_insert(felt);
        if felt > since + LONGEST_PAUSE + 2 * TICK {
            self.violated("there is no mold and nobody looks for one");
        }
        if self.state.next_wake(self.now).is_none() {
            self.violated("there is no mold and nothing wakes the plan to look for one");
        }
    }

    /// The server ends in time. A child that turns up late may have to be killed after the last deadline.
    fn check_way_down(&self) {
        if self.exit.is_some() || self.state.phase() == Phase::Over {
            return;
        }
        let mut slack = 3 * TICK;
        if self.watch.slow_deaths {
            slack += 3 * SLOWEST_DEATH;
        }
        if self.watch.stubborn {
            slack += KILL_TIMEOUT;
        }
        if self.watch.late {
            slack += 4 * self.settings.spawn_timeout;
        }
        let late =
            |since: Option<Millis>, patience: Millis| since.is_some_and(|since| self.felt() > since + patience + slack);
        if late(self.watch.shutdown_since, self.settings.hard_timeout) {
            self.violated("the server does not end");
        }
        if late(self.watch.interrupted_since, INT_TIMEOUT) {
            self.violated("the server does not end at once");
        }
    }

    /// Whether everything is as it should be.
    pub fn is_settled(&self) -> bool {
        let mold = self.state.mold().map(|mold| mold.token);
        let in_place = |child: &Child| match child.kind {
            Kind::Mold => child.is_ready() && Some(child.token) == mold,
            Kind::Worker(nr) => child.is_ready() && child.forker == mold && nr < self.state.wanted(),
            Kind::Service => child.is_ready() && child.forker == mold && self.settings.service,
            Kind::Reactor => child.is_ready() && self.watch.reactor_wanted,
        };
        let mut children = self.state.children().iter();
        mold.is_some()
            && children.all(|child| child.stage == Stage::Abandoned || in_place(child))
            && self.missing() == 0
            && self.state.children().service().is_some() == self.settings.service
            && self.state.has_reactor() == self.watch.reactor_wanted
            && self.state.is_complete()
            && !self.state.is_reforking()
            && (!self.watch.refork_owed || self.state.wanted() == 0)
            && self.processes.values().all(|process| !process.hung && !process.dead)
    }

    /// Nobody lives of whom the monitor does not know, and nobody is known who does not live.
    pub fn check_population(&self) {
        for process in self.processes.values().filter(|process| !process.dead && !process.is_middle()) {
            if !self.state.children().get(process.token).is_some_and(Child::is_ready) {
                self.violated(&format!("{process:?} is left over"));
            }
        }
        let alive = self.processes.values().filter(|process| !process.dead && !process.is_middle()).count();
        let others = usize::from(self.settings.service) + usize::from(self.watch.reactor_wanted);
        if alive != self.state.wanted() as usize + 1 + others {
            self.violated(&format!("{alive} processes are alive"));
        }
    }
}
