//! Children that have ended, our own and others.

use magnus::value::ReprValue;
use magnus::{Error, Ruby};
use pitchfork_core::children::Pid;
use pitchfork_core::plan::{Event, Level};
use pitchfork_core::sys::{clock, process};

use super::{Monitor, TICK};
use crate::process::Role;
use crate::vm::fork::reap;

impl Monitor {
    /// Reaps our children, each after its last words. Strangers, which a process that adopts orphans gets as well,
    /// are reaped when nobody else, such as a `system` in a hook, has done so for a while.
    pub(super) fn reap_all(&mut self, ruby: &Ruby) -> Result<Option<Role>, Error> {
        if process::some_zombie().is_none() {
            self.strangers.clear();
            return Ok(None);
        }
        let pids: Vec<Pid> = self.state.children().pids().collect();
        for pid in pids {
            let status = match reap(ruby, pid) {
                Ok(None) => continue,
                Ok(Some(status)) => Some(status),
                // Its middle process has told its pid and is still its parent.
                Err(_) if process::is_alive(pid) => continue,
                // Somebody else has reaped it, so its status is lost, but not the fact.
                Err(_) => None,
            };
            let Some(token) = self.state.children().by_pid(pid).map(|child| child.token) else { continue };
            if let Some(role) = self.listen_to(ruby, token)? {
                return Ok(Some(role));
            }
            let event = if status.is_some() { Event::Exited { pid } } else { Event::Vanished(token) };
            if let Some(role) = self.handle(ruby, event, status)? {
                return Ok(Some(role));
            }
        }
        self.reap_strangers(ruby);
        Ok(None)
    }

    fn reap_strangers(&mut self, ruby: &Ruby) {
        let now = clock::monotonic();
        let zombies: Vec<Pid> =
            process::zombies().into_iter().filter(|pid| self.state.children().by_pid(*pid).is_none()).collect();
        self.strangers.retain(|pid, _| zombies.contains(pid));
        for pid in zombies {
            let since = *self.strangers.entry(pid).or_insert(now);
            if now >= since + TICK
                && let Ok(Some(status)) = reap(ruby, pid)
            {
                self.strangers.remove(&pid);
                self.server.log(ruby, Level::Info, &format!("reaped unknown subprocess {}", status.inspect()));
            }
        }
    }
}
