//! Where workers come from: finding a mold when there is none, and replacing the one there is.

use super::{Action, Candidate, Child, Kind, Level, MAX_BOOT_FORK_FAILURES, Proof, Stage, Token, Turn};
use crate::refork::CONDITION_BACKOFF;

impl Turn<'_> {
    /// Without a mold: take the candidate as it is, else promote a worker, else boot afresh.
    pub(super) fn look_for_a_mold(&mut self) {
        if self.state.mold.is_some() {
            return;
        }
        if let Some(candidate) = self.state.candidate {
            if self.state.children.get(candidate.token).is_some_and(Child::is_ready) {
                self.install(candidate.token);
            }
            return;
        }
        if !self.state.mold_backoff.is_over(self.now) {
            return;
        }
        if let Some(worker) = self.best_to_promote() {
            self.promote(worker);
        } else if !self.state.children.workers().any(|worker| worker.stage == Stage::Starting) {
            // Whoever is starting may be promoted soon, which is cheaper than a boot. Its deadline is near.
            self.boot();
        }
    }

    /// A refork by hand waits until the one before it is through, and until there is somebody to promote.
    pub(super) fn start_queued_refork(&mut self) {
        if !self.state.refork_queued || self.state.mold.is_none() || self.state.is_reforking() {
            return;
        }
        if let Some(worker) = self.best_to_promote() {
            self.state.refork_queued = false;
            self.promote(worker);
            return;
        }
        let unsafe_worker = self.state.children.workers().find(|worker| worker.is_ready()).map(Child::to_string);
        if let Some(worker) = unsafe_worker {
            self.log(Level::Error, format!("{worker} is no longer fork safe, can't refork"));
            self.state.refork_queued = false;
        }
    }

    /// The warmest worker of the newest generation that may be forked and has not failed at it just now.
    fn best_to_promote(&self) -> Option<Token> {
        let fit = |worker: &&Child| {
            worker.is_ready() && self.view.fork_safe(worker.slot) && !self.state.passed_over.contains(&worker.token)
        };
        self.state
            .children
            .workers()
            .filter(fit)
            .max_by_key(|worker| (worker.generation, self.view.requests(worker.slot)))
            .map(|worker| worker.token)
    }

    pub(super) fn promote(&mut self, worker: Token) {
        let Some(generation) = self.state.children.get(worker).map(|worker| worker.generation + 1) else { return };
        // It may have a request in hand, and forks only after it.
        let patience = self.state.settings.hard_timeout + self.state.settings.spawn_timeout;
        let Some(mold) = self.enter(Kind::Mold, generation, Some(worker), patience) else { return };
        self.state.candidate = Some(Candidate { token: mold.token, proof: Proof::Owed });
        self.actions.push(Action::Promote { forker: worker, token: mold.token, slot: mold.slot, generation });
    }

    fn boot(&mut self) {
        let Some(mold) = self.enter(Kind::Mold, 0, None, super::BOOT_TIMEOUT) else { return };
        self.state.candidate = Some(Candidate { token: mold.token, proof: Proof::Owed });
        self.actions.push(Action::Boot { token: mold.token, slot: mold.slot });
    }

    /// A candidate replaces a living mold only after a worker has come up from it.
    pub(super) fn prove_candidate(&mut self) {
        let (Some(candidate), Some(_)) = (self.state.candidate, self.state.mold) else { return };
        let Some(mold) = self.state.children.get(candidate.token).filter(|mold| mold.is_ready()) else { return };
        match candidate.proof {
            _ if self.state.wanted == 0 => self.install(candidate.token),
            Proof::Owed if !self.may_spawn() => {}
            Proof::Owed => {
                let generation = mold.generation;
                if let Some(nr) = self.next_vacancy() {
                    self.ask_for_proof(candidate.token, generation, nr);
                } else if self.state.unavailable() < self.state.max_unavailable()
                    && let Some((worker, nr)) = self.coldest_worker()
                {
                    self.dismiss_to_replace(worker);
                    self.note_proof(Proof::Vacating(nr));
                }
            }
            Proof::Vacating(nr) => {
                let generation = mold.generation;
                if self.is_vacant(nr) && self.may_spawn() {
                    self.ask_for_proof(candidate.token, generation, nr);
                }
            }
            Proof::Asked(worker) => match self.state.children.get(worker).map(|worker| worker.stage) {
                Some(Stage::Ready) => self.install(candidate.token),
                Some(Stage::Requested | Stage::Starting) => {}
                // Its number is not wanted any more.
                Some(Stage::Leaving) => self.note_proof(Proof::Owed),
                _ => self.reject(candidate.token),
            },
        }
    }

    fn ask_for_proof(&mut self, mold: Token, generation: u32, nr: u32) {
        match self.spawn(mold, generation, Kind::Worker(nr)) {
            Some(worker) => self.note_proof(Proof::Asked(worker)),
            None => self.note_proof(Proof::Owed),
        }
    }

    fn note_proof(&mut self, proof: Proof) {
        if let Some(candidate) = &mut self.state.candidate {
            candidate.proof = proof;
        }
    }

    /// Replacing the worker that has served least loses the least warmth.
    fn coldest_worker(&self) -> Option<(Token, u32)> {
        self.state
            .children
            .workers()
            .filter(|worker| worker.is_ready())
            .filter_map(|worker| Some((worker, worker.occupies()?)))
            .filter(|(_, nr)| *nr < self.state.wanted)
            .min_by_key(|(worker, nr)| (self.view.requests(worker.slot), *nr))
            .map(|(worker, nr)| (worker.token, nr))
    }

    fn install(&mut self, token: Token) {
        let old = self.state.mold.replace(token);
        self.state.candidate = None;
        self.state.passed_over.clear();
        self.state.boot_fork_failures = 0;
        self.actions.push(Action::Current(token));
        if let Some(old) = old.and_then(|old| self.state.children.get(old)) {
            let (token, line) = (old.token, format!("Terminating old {old}"));
            self.log(Level::Info, line);
            self.dismiss(token, false);
        }
    }

    fn reject(&mut self, token: Token) {
        self.state.candidate = None;
        self.state.condition_backoff_until = self.now + CONDITION_BACKOFF;
        if let Some(mold) = self.state.children.get(token) {
            self.log(Level::Error, format!("no worker came up from {mold}, keeping the old mold"));
            self.dismiss(token, false);
        }
    }

    pub(super) fn account_for_mold(&mut self, mold: &Child) {
        if self.state.mold == Some(mold.token) {
            self.state.mold = None;
            // Taken back when a worker comes up from the next one.
            self.state.mold_backoff.fail(self.now);
        }
        if self.state.candidate.is_none_or(|candidate| candidate.token != mold.token) {
            return;
        }
        self.state.candidate = None;
        if let Some(worker) = mold.forker {
            self.state.condition_backoff_until = self.now + CONDITION_BACKOFF;
            if self.state.mold.is_some() {
                self.log(Level::Error, format!("{mold} did not come up, keeping the old mold"));
            } else {
                self.state.passed_over.insert(worker);
            }
        } else if mold.pid.is_some() || self.state.boot_fork_failures >= MAX_BOOT_FORK_FAILURES {
            self.give_up("No mold alive, shutting down");
        } else {
            // The monitor could not even fork: memory or processes are short, which may pass.
            self.state.passed_over.clear();
            self.state.mold_backoff.fail(self.now);
        }
    }
}
