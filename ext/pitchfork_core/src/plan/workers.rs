//! Keeping the wanted number of workers, all of them forked from the current mold.

use super::{Action, Child, Kind, Level, Millis, Proof, SPAWNS_IN_FLIGHT, Stage, Token, Turn};

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
        while self.may_ask(forker)
            && let Some(nr) = self.next_vacancy()
            && self.spawn(forker, generation, Kind::Worker(nr)).is_some()
        {}
    }

    /// Whether a mold can take one more order, and the last failures are long enough ago.
    pub(super) fn may_ask(&self, mold: Token) -> bool {
        self.may_spawn() && self.in_flight(mold) < SPAWNS_IN_FLIGHT
    }

    /// How many children a mold has been asked for and has not forked yet.
    fn in_flight(&self, mold: Token) -> usize {
        let in_flight = |child: &&Child| child.stage == Stage::Requested && child.forker == Some(mold);
        self.state.children.iter().filter(in_flight).count()
    }

    /// A `before_fork` may use all of a spawn's time, so whoever waits behind others has theirs as well.
    pub(super) fn spawn(&mut self, forker: Token, generation: u32, kind: Kind) -> Option<Token> {
        let ahead = self.in_flight(forker) as Millis;
        let child = self.enter(kind, generation, Some(forker), self.state.settings.spawn_timeout * (1 + ahead))?;
        self.log(Level::Info, format!("{child} spawning..."));
        self.actions.push(Action::Spawn { forker, token: child.token, slot: child.slot, kind, generation });
        Some(child.token)
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
        if self.has_failed(worker) {
            self.state.worker_backoffs.entry(nr).or_default().fail(self.now);
        } else {
            self.state.worker_backoffs.remove(&nr);
        }
    }
}
