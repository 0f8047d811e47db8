//! The reactor: how it starts, and what must hold for it and for all others because of it.

use pitchfork_core::children::{Child, Kind, Stage, Token};
use pitchfork_core::message::Report;
use pitchfork_core::plan::{Action, Event, Phase, step};

use crate::actions::{LONGEST_PAUSE, TRIES_A_SECOND};
use crate::process::Life;
use crate::watch::rate;
use crate::world::{TICK, World};

/// What is to become of the others, without the names of new children.
type Deeds = Vec<String>;

impl World {
    pub fn start_reactor(&mut self, token: Token, slot: u32) {
        if self.rng.chance(self.weather.boot_fork_fails) {
            self.fail(token);
            return;
        }
        let pid = self.new_process(token, Kind::Reactor, slot, Life::Callbacks, vec![token]);
        self.say(token, Report::Forked { pid });
        self.release(token);
        let delay = self.lasts(1, 50);
        self.enter(pid, Life::Callbacks, delay);
        self.hang_if(pid, self.weather.hang_in_callback);
    }

    /// Whether there are others, or will be.
    fn may_need_reactor(&self) -> bool {
        let drains = self.state.phase() == Phase::Draining && !self.state.children().all_others_gone();
        self.is_running() || drains
    }

    pub fn check_reactor_start(&mut self) {
        if !self.may_need_reactor() {
            self.violated("a reactor is started and nobody is left to use it");
        }
        let now = self.now;
        if rate(&mut self.watch.reactor_starts, now) > TRIES_A_SECOND {
            self.violated("the plan spins: the reactor is tried too often");
        }
        if !self.watch.reactor_wanted {
            self.violated("a reactor is started that nobody wants");
        }
        let adopted = |token| self.watch.adopted.contains(&token);
        let lives = |token| self.processes.values().any(|process| process.token == token && !process.dead);
        let mut reactors = self.processes.values().filter(|process| process.is_reactor() && adopted(process.token));
        if let Some(old) = reactors.find(|old| lives(old.token)) {
            self.violated(&format!("{:?} still lives and its place as the reactor is given away", old.token));
        }
    }

    /// Others may need it as long as there are any.
    pub fn check_conclusion(&self, reactor: Token) {
        let needs_it =
            |child: &&Child| child.token != reactor && !(child.stage == Stage::Abandoned && child.pid.is_none());
        if let Some(child) = self.state.children().iter().find(needs_it) {
            self.violated(&format!("the reactor is told that it is the last one, and there is {child}"));
        }
    }

    pub fn check_hooks(&self, child: &Child, as_it_should_be: bool) {
        if !as_it_should_be {
            self.violated(&format!("the end of {child} is told to the wrong people"));
        }
    }

    /// There is at most one, and once one is wanted there is one, or one is on its way, or a pause ends soon.
    pub fn check_reactors(&mut self) {
        let counts = |child: &&Child| child.kind == Kind::Reactor && child.stage != Stage::Abandoned;
        let reactors = self.state.children().iter().filter(counts).count();
        if reactors > 1 {
            self.violated(&format!("there are {reactors} reactors"));
        }
        let given_up = |child: &&Child| child.kind == Kind::Reactor && child.stage == Stage::Abandoned;
        let crowded = self.state.children().iter().filter(given_up).count() > 1;
        if !self.may_need_reactor() || !self.watch.reactor_wanted || reactors > 0 || crowded {
            self.watch.without_reactor_since = None;
            return;
        }
        let felt = self.felt();
        let since = *self.watch.without_reactor_since.get_or_insert(felt);
        if felt > since + LONGEST_PAUSE + 2 * TICK {
            self.violated("a reactor is wanted and nobody starts one");
        }
        if self.state.next_wake(self.now).is_none() {
            self.violated("a reactor is wanted and nothing wakes the plan to start one");
        }
    }

    /// What the plan would do now if it did not hear of this event, in case that is about the reactor.
    pub fn without_reactor(&self, event: Event) -> Option<Deeds> {
        let children = self.state.children();
        let child = match event {
            Event::Message(_, Report::ReactorWanted) => return Some(self.deeds_of_nothing()),
            Event::Message(token, _) | Event::Closed(token) | Event::Vanished(token) | Event::Failed(token) => {
                children.get(token)
            }
            Event::Exited { pid } => children.by_pid(pid),
            _ => None,
        };
        child.filter(|child| child.kind == Kind::Reactor && self.is_running()).map(|_| self.deeds_of_nothing())
    }

    fn deeds_of_nothing(&self) -> Deeds {
        let mut state = self.state.clone();
        self.deeds(&step(&mut state, Event::Start, &self.board, self.now))
    }

    /// Whatever happens to the reactor, nothing else comes of it for anybody else.
    pub fn check_independence(&self, without: Option<Deeds>, actions: &[Action]) {
        let Some(without) = without else { return };
        let with = self.deeds(actions);
        if with != without {
            self.violated(&format!("the reactor makes a difference: {with:?} instead of {without:?}"));
        }
    }

    fn deeds(&self, actions: &[Action]) -> Deeds {
        let is_reactor = |slot: u32| slot < 2;
        let of_reactor =
            |token: Token| self.state.children().get(token).is_some_and(|child| child.kind == Kind::Reactor);
        let deed = |action: &Action| match *action {
            Action::StartReactor { .. } | Action::LogEnd(_) | Action::Log(..) => None,
            Action::Signal { token, .. } if of_reactor(token) => None,
            Action::Forget { slot, .. } | Action::Disown { slot } if is_reactor(slot) => None,
            Action::Boot { .. } => Some("Boot".to_owned()),
            Action::Spawn { forker, kind, generation, .. } => Some(format!("Spawn {forker:?} {kind} {generation}")),
            Action::Promote { forker, generation, .. } => Some(format!("Promote {forker:?} {generation}")),
            ref other => Some(format!("{other:?}")),
        };
        actions.iter().filter_map(deed).collect()
    }
}
