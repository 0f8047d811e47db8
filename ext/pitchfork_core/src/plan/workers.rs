//! Keeping the wanted number of workers, all of them forked from the current mold.

use super::{Action, Child, Kind, Level, Proof, SPAWNS_IN_FLIGHT, Stage, Token, Turn};
use crate::refork::STABLE_AFTER;

impl Turn<'_> {
    pub(super) fn dismiss_surplus(&mut self) {
        let wanted = self.state.wanted;
        let surplus = |worker: &&Child| worker.occupies().is_some_and(|nr| nr >= wanted) && !worker.is_dismissed();
        let surplus: Vec<Token> = self.state.children.workers().filter(surplus).map(|worker| worker.token).collect();
        for token in surplus {
            self.dismiss(token, false);
        }
    }

    /// A few at a time, so that the others keep serving.
    pub(super) fn dismiss_outdated(&mut self) {
        if self.state.candidate.is_some() || self.state.mold().is_none_or(|mold| !mold.is_ready()) {
            return;
        }
        let room = self.state.max_unavailable().saturating_sub(self.state.unavailable());
        let outdated = |worker: &&Child| worker.is_ready() && self.state.is_outdated(worker);
        let outdated = self.state.children.workers().filter(outdated).map(|worker| worker.token);
        let outdated: Vec<Token> = outdated.take(room as usize).collect();
        for token in outdated {
            self.dismiss_to_replace(token);
        }
    }

    pub(super) fn dismiss_to_replace(&mut self, token: Token) {
        if let Some(worker) = self.state.children.get(token) {
            self.log(Level::Info, format!("Sent SIGTERM to {worker}"));
        }
        self.dismiss(token, false);
    }

    pub(super) fn fill_vacancies(&mut self) {
        let Some(mold) = self.state.mold().filter(|mold| mold.is_ready()) else { return };
        let (forker, generation) = (mold.token, mold.generation);
        let in_flight = |worker: &&Child| worker.stage == Stage::Requested && worker.forker == Some(forker);
        let mut room = SPAWNS_IN_FLIGHT.saturating_sub(self.state.children.workers().filter(in_flight).count());
        while room > 0 {
            let Some(nr) = self.next_vacancy() else { return };
            if self.spawn(forker, generation, nr).is_none() {
                return;
            }
            room -= 1;
        }
    }

    pub(super) fn spawn(&mut self, forker: Token, generation: u32, nr: u32) -> Option<Token> {
        let worker = self.enter(Kind::Worker(nr), generation, Some(forker), self.state.settings.spawn_timeout)?;
        self.log(Level::Info, format!("{worker} spawning..."));
        self.actions.push(Action::Spawn { forker, token: worker.token, slot: worker.slot, nr, generation });
        Some(worker.token)
    }

    /// The lowest wanted number that nobody holds, that is not kept for a candidate's proof, and whose last holder
    /// did not fail just now.
    pub(super) fn next_vacancy(&self) -> Option<u32> {
        let kept = match self.state.candidate.map(|candidate| candidate.proof) {
            Some(Proof::Vacating(nr)) => Some(nr),
            _ => None,
        };
        let mut taken = vec![false; self.state.wanted as usize];
        for nr in self.state.children.workers().filter_map(Child::occupies) {
            if let Some(taken) = taken.get_mut(nr as usize) {
                *taken = true;
            }
        }
        (0..self.state.wanted).find(|nr| !taken[*nr as usize] && Some(*nr) != kept && self.may_try(*nr))
    }

    pub(super) fn is_vacant(&self, nr: u32) -> bool {
        self.state.children.workers().all(|worker| worker.occupies() != Some(nr))
    }

    fn may_try(&self, nr: u32) -> bool {
        self.state.worker_backoffs.get(&nr).is_none_or(|backoff| backoff.is_over(self.now))
    }

    pub(super) fn account_for_worker(&mut self, worker: &Child, nr: u32) {
        let failed = match worker.ready_at {
            None => worker.stage != Stage::Leaving,
            Some(at) => worker.is_ready() && self.now < at + STABLE_AFTER,
        };
        if failed {
            self.state.worker_backoffs.entry(nr).or_default().fail(self.now);
        } else {
            self.state.worker_backoffs.remove(&nr);
        }
    }
}
