//! How a worker becomes the origin of the next generation: by a condition of its own, or because it is told to.

use magnus::value::ReprValue;
use magnus::{Error, Ruby, Value};
use pitchfork_core::message::Report;
use pitchfork_core::plan::Level;

use super::{Serving, Shown};
use crate::process::child::{House, Post};
use crate::process::clockwork;
use crate::process::sibling::{self, Sibling, fork_sibling};

impl Serving {
    /// Asks the condition whether it is time for a refork, and the monitor whether it may be now.
    pub(super) fn ask_condition(&mut self, ruby: &Ruby, condition: Value) -> Result<(), Error> {
        let line = self.child.line();
        if line.is_unsafe_to_fork() || self.child.house.scoreboard.is_outdated(self.child.post.slot) {
            return Ok(());
        }
        let logger = self.child.house.server.logger(ruby)?;
        if condition.funcall::<_, _, Value>("met?", (*self.child.object, logger))?.to_bool() {
            self.promoting = true;
            self.child.report(ruby, Report::ConditionMet)?;
            if condition.respond_to("backoff!", false)? {
                condition.funcall::<_, _, Value>("backoff!", ())?;
            }
        }
        Ok(())
    }

    /// Forks the next mold. Gives the post back in the new process.
    pub(super) fn promote(&mut self, ruby: &Ruby, post: Post) -> Result<Option<Post>, Error> {
        let House { server, settings, .. } = &*self.child.house;
        let by_condition = std::mem::take(&mut self.promoting);
        let token = post.token;
        if self.child.line().is_unsafe_to_fork() {
            self.child.report(ruby, Report::SpawnFailed { token, unsafe_to_fork: true })?;
            return Ok(None);
        }
        let requests = self.child.line().requests();
        self.child.title(ruby, format_args!("requests: {requests}, spawning mold"));
        self.shown = Shown::Other;
        self.child.promise(settings.spawn_timeout + sibling::PATIENCE);
        if by_condition {
            let line = format!("{} refork condition met, promoting ourselves", self.child.name()?);
            server.log(ruby, Level::Info, &line);
        }
        // Who knows how long the fork takes, and what this worker was woken for. And a copy of a connection would keep
        // it open.
        self.child.house.link.nudge.ring();
        self.give_all_away(ruby);
        let House { server, .. } = &*self.child.house;
        server.hook_or_end(ruby, "before_fork", ())?;
        let calm = self.burden.lock();
        let forked = fork_sibling(ruby, &self.child, &post.channel);
        drop(calm);
        match forked? {
            Sibling::Child => return Ok(Some(post)),
            Sibling::Forked => {}
            Sibling::NoRoom | Sibling::Broken => {
                server.log(ruby, Level::Error, &format!("{} failed to spawn a mold", self.child.name()?));
                self.child.report(ruby, Report::SpawnFailed { token, unsafe_to_fork: false })?;
            }
        }
        clockwork::stop();
        self.title_waiting(ruby);
        Ok(None)
    }
}
