//! What each event tells: it is written into the state, and nothing is decided here.

use super::{Action, Event, Kill, Kind, Level, PREPARE_TIMEOUT, Pid, Proof, Report, Signal, Stage, Token, Turn};
use crate::refork::CONDITION_BACKOFF;

impl Turn<'_> {
    pub(super) fn take_in(&mut self, event: Event) {
        match event {
            Event::Start | Event::Tick => {}
            Event::Message(token, report) => self.take_in_report(token, report),
            Event::Closed(token) => self.take_in_closed(token),
            Event::Exited { pid } => {
                let token = self.state.children.by_pid(pid).map(|child| child.token);
                if let Some(child) = token.and_then(|token| self.remove(token)) {
                    self.actions.push(match child.kind {
                        Kind::Reactor => Action::LogEnd(child),
                        _ => Action::Departed(child),
                    });
                }
            }
            Event::Vanished(token) => drop(self.remove(token)),
            Event::Failed(token) => self.take_in_failure(token),
            Event::CannotListen => self.give_up("Nobody can connect, shutting down"),
            Event::ExitAsked(status) => {
                self.state.exit_status = status;
                self.shut_down("exit in a hook");
            }
            Event::Signal(signal) => self.take_in_signal(signal),
        }
    }

    fn take_in_report(&mut self, token: Token, report: Report) {
        match report {
            Report::Forked { pid } => self.learn_pid(token, pid),
            Report::Registered { pid } => {
                self.learn_pid(token, pid);
                if let Some(child) = self.state.children.get(token) {
                    // Of workers and molds hooks say that they are spawned.
                    let what = if child.kind == Kind::Service { "spawned" } else { "registered" };
                    self.log(Level::Info, format!("{child} {what}"));
                }
            }
            Report::Preparing => {
                let deadline = self.now + PREPARE_TIMEOUT;
                if let Some(child) = self.state.children.get_mut(token)
                    && child.stage == Stage::Starting
                {
                    child.stage = Stage::Preparing;
                    child.deadline = Some(deadline);
                }
            }
            Report::Ready => self.take_in_ready(token),
            Report::SpawnFailed { token, unsafe_to_fork } => self.take_in_refusal(token, unsafe_to_fork),
            Report::ConditionMet => self.take_in_condition(token),
            Report::ReactorWanted => self.state.reactor.wanted = true,
            Report::Complaint(text) => self.log(Level::Error, text.to_string()),
            Report::Remark(text) => self.log(Level::Debug, text.to_string()),
        }
    }

    fn learn_pid(&mut self, token: Token, pid: Pid) {
        let Some(child) = self.state.children.get(token) else { return };
        if child.pid.is_some() {
            return;
        }
        let deadline = self.now
            + match (child.kind, child.forker) {
                (Kind::Mold, None) => super::BOOT_TIMEOUT,
                _ => self.state.settings.spawn_timeout,
            };
        self.state.children.learn_pid(token, pid);
        let Some(child) = self.state.children.get_mut(token) else { return };
        match child.stage {
            Stage::Requested => {
                child.stage = Stage::Starting;
                child.deadline = Some(deadline);
            }
            // Nobody waits for it any more, and somebody else may have its number by now.
            Stage::Abandoned => self.kill(token, Kill::Kill),
            // A mold that prepares itself does not read its channel.
            Stage::Leaving if child.kind == Kind::Mold => {
                self.actions.push(Action::Signal { token, pid, kill: Kill::Term });
            }
            _ => {}
        }
    }

    fn take_in_ready(&mut self, token: Token) {
        let now = self.now;
        let Some(child) = self.state.children.get_mut(token) else { return };
        if !matches!(child.stage, Stage::Starting | Stage::Preparing) {
            return;
        }
        child.stage = Stage::Ready;
        child.deadline = None;
        child.ready_at = Some(now);
        let (kind, forker) = (child.kind, child.forker);
        if !matches!(kind, Kind::Worker(_)) {
            let line = format!("{child} ready");
            self.log(Level::Info, line);
        }
        // A mold that nobody comes up from is no way out of a row of failures, nor is a reactor.
        if matches!(kind, Kind::Worker(_) | Kind::Service) {
            self.state.spawn_errors = 0;
            self.state.spawn_pause = 0;
        }
        match kind {
            Kind::Mold if !self.state.listening => {
                self.state.listening = true;
                self.actions.push(Action::Listen);
            }
            Kind::Worker(_) if forker == self.state.mold => self.state.mold_backoff.succeed(),
            _ => {}
        }
    }

    /// Nobody could be asked for this child, so none will turn up, and nothing is kept for it.
    fn take_in_failure(&mut self, token: Token) {
        let Some(child) = self.state.children.get(token).filter(|child| child.pid.is_none()) else { return };
        if child.kind == Kind::Mold && child.forker.is_none() {
            self.state.boot_fork_failures += 1;
        }
        self.remove(token);
    }

    /// A forker says that it did not fork the child it was asked for. There may be one all the same, if the middle
    /// process was killed right after its fork.
    fn take_in_refusal(&mut self, token: Token, unsafe_to_fork: bool) {
        let Some(child) = self.state.children.get(token) else { return };
        let (forker, outstanding) = (child.forker, child.pid.is_none() && child.stage != Stage::Abandoned);
        if unsafe_to_fork && let Some(forker) = forker.and_then(|forker| self.state.children.get(forker)) {
            let line = format!("{forker} is no longer fork safe, can't refork");
            self.log(Level::Error, line);
        }
        if outstanding {
            self.abandon(token);
        }
    }

    fn take_in_closed(&mut self, token: Token) {
        let deadline = self.now + self.state.settings.hard_timeout;
        let Some(child) = self.state.children.get_mut(token) else { return };
        if child.pid.is_none() {
            // Whoever forked it would have said its pid before closing: there is no such process.
            self.remove(token);
        } else if child.deadline.is_none() {
            // It is exiting, or it has lost its mind. Its death is for the reaping to tell.
            child.deadline = Some(deadline);
        }
    }

    fn take_in_condition(&mut self, token: Token) {
        let Some(worker) = self.state.children.get(token) else { return };
        let granted = self.is_running()
            && worker.is_ready()
            && self.view.fork_safe(worker.slot)
            && self.state.mold.is_some()
            && !self.state.is_reforking()
            && self.now >= self.state.condition_backoff_until;
        if granted {
            self.state.condition_backoff_until = self.now + CONDITION_BACKOFF;
            self.promote(token);
        }
    }

    fn take_in_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Int => self.shut_down_now(),
            Signal::Quit => self.shut_down("QUIT received"),
            Signal::Term => self.shut_down("TERM received"),
            Signal::Usr2 if self.is_running() => {
                self.log(Level::Info, "USR2 received, reforking".into());
                self.state.refork_queued = true;
            }
            Signal::Usr2 => self.log(Level::Error, "can't refork: the server is shutting down".into()),
            Signal::Ttin if self.state.wanted < self.max_workers() => {
                self.state.wanted += 1;
                self.log_wanted("TTIN");
            }
            Signal::Ttin => {
                let line = format!("can't add a worker: the scoreboard has room for {}", self.max_workers());
                self.log(Level::Error, line);
            }
            Signal::Ttou => {
                self.state.wanted = self.state.wanted.saturating_sub(1);
                self.log_wanted("TTOU");
                if let Some(candidate) = &mut self.state.candidate
                    && matches!(candidate.proof, Proof::Vacating(nr) if nr >= self.state.wanted)
                {
                    candidate.proof = Proof::Owed;
                }
            }
        }
    }

    fn log_wanted(&mut self, signal: &str) {
        let line = format!("{signal} received, worker_processes={}", self.state.wanted);
        self.log(Level::Info, line);
    }

    /// Two lines a worker, so that its successor can be asked for while it is forgotten, and some for the others.
    fn max_workers(&self) -> u32 {
        self.state.settings.slots.saturating_sub(super::OTHER_SLOTS) / 2
    }
}
