//! The way down.

use super::{Action, Child, INT_TIMEOUT, Kill, Kind, Level, Phase, Stage, Token, Turn};

impl Turn<'_> {
    pub(super) fn is_running(&self) -> bool {
        self.state.phase == Phase::Running
    }

    pub(super) fn shut_down(&mut self, cause: &str) {
        if self.is_running() {
            self.log(Level::Info, format!("{cause}, starting graceful shutdown"));
            self.find_a_drainer();
            self.begin(Phase::Draining);
        }
    }

    pub(super) fn shut_down_now(&mut self) {
        if matches!(self.state.phase, Phase::Running | Phase::Draining) {
            self.log(Level::Info, "INT received, starting immediate shutdown".into());
            self.begin(Phase::Stopping);
            for token in self.tokens() {
                self.interrupt(token);
            }
        }
    }

    pub(super) fn give_up(&mut self, line: &str) {
        if self.is_running() {
            self.log(Level::Fatal, line.into());
            self.state.exit_status = 1;
            self.begin(Phase::Draining);
        }
    }

    fn begin(&mut self, phase: Phase) {
        if self.is_running() {
            self.actions.push(Action::StopListening);
        }
        self.state.phase = phase;
        self.state.candidate = None;
        if phase == Phase::Draining {
            self.state.reactor.needed_until = Some(self.now + self.state.settings.hard_timeout);
            // Those that were to leave anyway may be the last ones to see the queues.
            let leaving = |token: &Token| self.state.children.get(*token).is_some_and(|c| c.stage == Stage::Leaving);
            let leaving = self.tokens().into_iter().filter(leaving);
            self.actions.extend(leaving.map(|token| Action::Dismiss { token, drain: true }));
        }
    }

    /// If all workers are just being replaced, nobody would see to the queues.
    fn find_a_drainer(&mut self) {
        let able = |stage| matches!(stage, Stage::Requested | Stage::Starting | Stage::Ready);
        if self.state.children.workers().any(|worker| able(worker.stage)) {
            return;
        }
        if let Some(mold) = self.state.mold().filter(|mold| mold.is_ready()) {
            let (forker, generation) = (mold.token, mold.generation);
            // Those that are leaving still hold theirs.
            let held = self.state.children.workers().filter_map(Child::occupies).max();
            self.spawn(forker, generation, Kind::Worker(held.map_or(0, |nr| nr + 1)));
        }
    }

    fn tokens(&self) -> Vec<Token> {
        self.state.children.iter().map(|child| child.token).collect()
    }

    /// Sees everybody out, and says when the last one is gone.
    pub(super) fn wind_down(&mut self) {
        if self.state.phase == Phase::Over {
            return;
        }
        for token in self.tokens() {
            let Some(child) = self.state.children.get(token).filter(|child| !child.is_dismissed()) else { continue };
            // One that comes up late is still needed, and told when it is there.
            if child.kind == Kind::Reactor && !child.is_ready() && self.state.phase == Phase::Draining {
                continue;
            }
            // A mold that still boots does not read its channel; the signal ends it.
            let busy = child.kind == Kind::Mold && !child.is_ready();
            let pid = child.pid.filter(|_| busy);
            if self.state.phase == Phase::Stopping {
                self.interrupt(token);
                continue;
            }
            self.dismiss(token, true);
            if let Some(pid) = pid {
                self.actions.push(Action::Signal { token, pid, kill: Kill::Term });
            }
        }
        if self.state.phase == Phase::Draining {
            if self.state.children.all_others_gone() {
                self.conclude();
            } else {
                self.keep_reactor();
            }
        }
        if self.state.children.all_gone() {
            for token in self.tokens() {
                self.remove(token);
            }
            self.state.phase = Phase::Over;
            self.actions.push(Action::Exit(self.state.exit_status));
        }
    }

    fn interrupt(&mut self, token: Token) {
        let deadline = self.now + INT_TIMEOUT;
        let Some(child) = self.state.children.get_mut(token) else { return };
        match (child.stage, child.pid) {
            (Stage::Killed | Stage::Abandoned, _) => {}
            (_, None) => self.abandon(token),
            // No signal but the last one ends it.
            _ if child.kind == Kind::Reactor => {
                child.stage = Stage::Leaving;
                child.deadline = Some(deadline);
                self.actions.push(Action::Dismiss { token, drain: false });
            }
            (_, Some(pid)) => {
                child.stage = Stage::Leaving;
                child.deadline = Some(deadline);
                self.actions.push(Action::Signal { token, pid, kill: Kill::Int });
            }
        }
    }
}
