//! Those who are late.

use super::{Action, Child, KILL_TIMEOUT, Kill, Kind, Level, SUSPENDED, Stage, Token, Turn};

impl Turn<'_> {
    /// A stopped monitor sees every deadline missed at once, though its children were stopped with it.
    pub(super) fn forgive_suspension(&mut self) {
        let gap = self.now.saturating_sub(self.state.last_step.unwrap_or(self.now));
        self.state.last_step = Some(self.now);
        if gap < SUSPENDED {
            return;
        }
        self.state.judge_from = self.now + SUSPENDED;
        for child in self.state.children.iter_mut() {
            child.deadline = child.deadline.map(|deadline| deadline + gap);
        }
    }

    pub(super) fn kill(&mut self, token: Token, kill: Kill) {
        let Some(child) = self.state.children.get_mut(token) else { return };
        let Some(pid) = child.pid else { return };
        if child.stage != Stage::Abandoned {
            child.stage = Stage::Killed;
        }
        child.deadline = Some(self.now + KILL_TIMEOUT);
        self.actions.push(Action::Signal { token, pid, kill });
    }

    pub(super) fn enforce_deadlines(&mut self) {
        let (now, view) = (self.now, self.view);
        let judged = now >= self.state.judge_from;
        let overdue = |child: &&Child| {
            child.deadline.is_some_and(|deadline| deadline <= now)
                || (child.is_ready() && judged && (1..now).contains(&view.deadline(child.slot)))
        };
        let overdue: Vec<Token> = self.state.children.iter().filter(overdue).map(|child| child.token).collect();
        for token in overdue {
            let Some(child) = self.state.children.get(token) else { continue };
            let line = format!("{child} timed out, killing");
            match (child.stage, child.pid) {
                (Stage::Abandoned, None) => drop(self.remove(token)),
                (_, None) => {
                    self.log(Level::Error, format!("{child} timed out during spawn, abandoning"));
                    self.abandon(token);
                }
                (Stage::Killed | Stage::Abandoned, _) => self.kill(token, Kill::Kill),
                (_, Some(_)) => {
                    // The reactor is nothing that users know of, in this hook or by the signal of their choice.
                    let kill = if child.kind == Kind::Reactor { Kill::Kill } else { Kill::Overdue };
                    if matches!(child.kind, Kind::Worker(_) | Kind::Service) {
                        self.actions.push(Action::HardTimeout(child.clone()));
                    }
                    self.log(Level::Error, line);
                    self.kill(token, kill);
                }
            }
        }
    }
}
