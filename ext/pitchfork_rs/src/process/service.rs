//! The service: serves no requests, and runs what the user wants to run once per server, in threads of their own.

use std::rc::Rc;

use magnus::{Error, Ruby};
use pitchfork_core::message::{Order, Report};

use super::Next;
use super::child::{Child, House, Post};

/// A service that is about to begin.
pub struct Service {
    /// What every process knows.
    pub house: Rc<House>,
    /// Its place.
    pub post: Post,
}

impl Service {
    /// Lets the user's threads run until told to leave.
    pub fn run(self, ruby: &Ruby) -> Result<Next, Error> {
        let Some(child) = Child::take_up(ruby, self.house, self.post)? else { return Ok(Next::Exit(1)) };
        let server = child.house.server;
        // Before the hook: one that supervises processes of its own traps these signals to pass them on.
        server.call(ruby, "trap_leave_signals", ())?;
        child.hook(ruby, "before_service_worker_ready")?;
        child.promise(child.house.settings.hard_timeout);
        child.line().set_ready();
        child.report(ruby, Report::Ready)?;
        child.title(ruby, format_args!("ready"));
        let ended = wait_for_the_end(ruby, &child);
        server.call(ruby, "service_exit", (*child.object,))?;
        ended.map(|()| Next::Exit(0))
    }
}

fn wait_for_the_end(ruby: &Ruby, child: &Child) -> Result<(), Error> {
    while !child.must_leave(ruby)? {
        child.promise(child.house.settings.hard_timeout);
        match child.next_order(ruby)? {
            None => child.wait_for_order(ruby)?,
            Some((Order::Leave { .. }, _)) => break,
            Some((order, _)) => child.complain(ruby, order)?,
        }
    }
    Ok(())
}
