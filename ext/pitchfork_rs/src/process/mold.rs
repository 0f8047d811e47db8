//! The mold: holds the warm application and forks workers.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use magnus::{Error, Ruby};
use pitchfork_core::children::{Kind, Token};
use pitchfork_core::message::{Order, Report};
use pitchfork_core::plan::Level;
use pitchfork_core::sys::channel::Channel;

use super::child::{Child, House, Post};
use super::service::Service;
use super::sibling::{self, Sibling, fork_sibling};
use super::worker::Worker;
use super::{Next, Role, prepare};
use crate::rack::handler::Handler;

/// A mold that is about to begin.
pub struct Mold {
    /// What every process knows.
    pub house: Rc<House>,
    /// Its place.
    pub post: Post,
    /// The application, unless it still has to be loaded.
    pub handler: Option<Handler>,
}

/// What ends a mold's waiting.
enum Turn {
    Leave,
    Fork(Post),
}

impl Mold {
    /// Loads the application if nobody has, prepares, and forks workers until told to leave.
    pub fn run(self, ruby: &Ruby) -> Result<Next, Error> {
        let Some(child) = Child::take_up(ruby, self.house, self.post)? else { return Ok(Next::Exit(1)) };
        let handler = match self.handler {
            Some(handler) => handler,
            None => load(ruby, &child)?,
        };
        child.hook(ruby, "after_mold_fork")?;
        // Only now: until here a signal ends this process at once, whatever it is busy with.
        child.house.server.call(ruby, "trap_leave_signals", ())?;
        if child.house.settings.mold_prepare {
            child.title(ruby, format_args!("preparing"));
            child.report(ruby, Report::Preparing)?;
            prepare::prepare(ruby)?;
        }
        child.promise(child.house.settings.hard_timeout);
        child.line().set_ready();
        child.report(ruby, Report::Ready)?;
        child.title(ruby, format_args!("ready"));
        match wait_for_orders(ruby, &child)? {
            Turn::Leave => Ok(Next::Exit(0)),
            Turn::Fork(post) => {
                let house = child.house;
                Ok(Next::Become(match post.kind {
                    Kind::Service => Role::Service(Box::new(Service { house, post })),
                    _ => Role::Worker(Box::new(Worker { house, post, handler })),
                }))
            }
        }
    }
}

fn load(ruby: &Ruby, child: &Child) -> Result<Handler, Error> {
    let server = child.house.server;
    child.title(ruby, format_args!("booting"));
    let app = server.call(ruby, "build_app", ());
    let app = app.map_err(|error| server.fatal(ruby, "the application could not be loaded", error))?;
    Handler::new(ruby, app, server.logger(ruby)?, child.house.settings.rack)
}

/// Returns in the mold when it shall leave, and in each worker that it forks.
fn wait_for_orders(ruby: &Ruby, child: &Child) -> Result<Turn, Error> {
    let mut failures = 0;
    loop {
        if child.must_leave(ruby)? {
            return Ok(Turn::Leave);
        }
        child.promise(child.house.settings.hard_timeout);
        match child.next_order(ruby)? {
            None => child.wait_for_order(ruby)?,
            Some((Order::Leave { .. }, _)) => return Ok(Turn::Leave),
            // Given up while it waited, as while this process was stopped: nobody wants the child, nor the wait for it.
            Some((Order::Spawn { token, slot, .. }, _)) if !child.house.scoreboard.line(slot).belongs_to(token) => {}
            Some((Order::Spawn { token, kind, slot, generation }, Some(descriptor))) => {
                let post = post(token, kind, generation, slot, descriptor);
                match spawn(ruby, child, post)? {
                    Spawned::Here(post) => return Ok(Turn::Fork(post)),
                    Spawned::There => failures = 0,
                    Spawned::NoRoom => {}
                    Spawned::Broken => failures += 1,
                }
                if failures > 1 {
                    let line =
                        format!("{} failed to spawn a worker twice in a row - corrupted mold process?", child.name()?);
                    child.house.server.log(ruby, Level::Fatal, &line);
                    return Err(Error::new(ruby.exception_system_exit(), "corrupted mold"));
                }
            }
            Some((order, _)) => child.complain(ruby, order)?,
        }
    }
}

/// The place described by an order.
pub fn post(token: Token, kind: Kind, generation: u32, slot: u32, descriptor: OwnedFd) -> Post {
    Post { token, kind, generation, slot, channel: Channel::from(descriptor) }
}

enum Spawned {
    Here(Post),
    There,
    NoRoom,
    Broken,
}

fn spawn(ruby: &Ruby, child: &Child, post: Post) -> Result<Spawned, Error> {
    let House { server, settings, .. } = &*child.house;
    child.promise(settings.spawn_timeout + sibling::PATIENCE);
    server.hook_or_end(ruby, "before_fork", ())?;
    let (token, kind) = (post.token, post.kind);
    let spawned = match fork_sibling(ruby, child, &post.channel)? {
        Sibling::Child => return Ok(Spawned::Here(post)),
        Sibling::Forked => return Ok(Spawned::There),
        Sibling::NoRoom => Spawned::NoRoom,
        Sibling::Broken => Spawned::Broken,
    };
    let what = if kind == Kind::Service { "service" } else { "worker" };
    server.log(ruby, Level::Fatal, &format!("{} failed to spawn a {what}, retrying", child.name()?));
    child.report(ruby, Report::SpawnFailed { token, unsafe_to_fork: false })?;
    Ok(spawned)
}
