//! What all children have in common.

use std::fmt;
use std::rc::Rc;

use magnus::prelude::*;
use magnus::value::BoxValue;
use magnus::{Error, Ruby, Value};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pitchfork_core::children::{Kind, Millis, Pid, Token};
use pitchfork_core::error::Error as CoreError;
use pitchfork_core::listen::Listeners;
use pitchfork_core::message::{Order, Report};
use pitchfork_core::reactor::Link;
use pitchfork_core::scoreboard::{Line, Scoreboard};
use pitchfork_core::sys::bell::Bell;
use pitchfork_core::sys::channel::{Channel, Received};
use pitchfork_core::sys::{clock, process};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::server::{Server, set_title};
use super::{signals, watcher};
use crate::ruby_api::info;
use crate::ruby_api::worker::Worker as WorkerObject;
use crate::vm::gvl;

/// What every process of a server knows.
pub struct House {
    /// The Ruby side.
    pub server: Server,
    /// The shared lines.
    pub scoreboard: Scoreboard,
    /// The monitor's pid.
    pub monitor: Pid,
    /// Becomes readable at the monitor's death, where the kernel can tell. One descriptor serves all generations.
    pub death: Option<Arc<OwnedFd>>,
    /// Limits and switches.
    pub settings: Settings,
    /// The sockets that the workers accept from.
    pub listeners: Listeners,
    /// Rings when workers have come or gone; only there if it matters which ones are at work.
    pub bell: Option<Arc<Bell>>,
    /// The workers' ends of the reactor's queues.
    pub link: Arc<Link>,
}

/// What children need of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When the application is told to hurry.
    pub soft_timeout: Millis,
    /// When the monitor kills.
    pub hard_timeout: Millis,
    /// How long a fork and its hooks may take.
    pub spawn_timeout: Millis,
    /// Whether each child leads a process group of its own.
    pub setpgid: bool,
    /// Whether a new mold collects garbage before it forks.
    pub mold_prepare: bool,
    /// Limits and switches of the HTTP layer.
    pub rack: crate::rack::settings::Settings,
}

/// The place that a child was forked for.
pub struct Post {
    /// The name of the spawn.
    pub token: Token,
    /// What the child is for.
    pub kind: Kind,
    /// Its generation.
    pub generation: u32,
    /// Its line on the scoreboard.
    pub slot: u32,
    /// Its end of its channel.
    pub channel: Channel,
}

/// A child at its post.
pub struct Child {
    /// What every process knows.
    pub house: Rc<House>,
    /// Its place.
    pub post: Post,
    /// The object that hooks get for it.
    pub object: BoxValue<Value>,
    /// How many forks lay behind this process then.
    forks: u32,
}

impl Child {
    /// Takes up a post in a process that has just been forked.
    ///
    /// `None` if nobody waits for it any more: the process must exit.
    pub fn take_up(ruby: &Ruby, house: Rc<House>, post: Post) -> Result<Option<Self>, Error> {
        signals::begin_child(house.monitor);
        let server = house.server;
        server.call(ruby, "trap_child_signals", ())?;
        if house.settings.setpgid
            && let Err(error) = process::lead_group()
        {
            server.log(ruby, pitchfork_core::plan::Level::Error, &error.to_string());
        }
        let followed = process::follow(house.monitor).map_err(|error| raise(ruby, &error))?;
        let line = house.scoreboard.line(post.slot);
        if !followed || !line.belongs_to(post.token) {
            return Ok(None);
        }
        let pid = std::process::id().cast_signed();
        line.set_pid(pid);
        info::enter(house.scoreboard, Some(line));
        let object = WorkerObject::living(house.scoreboard, post.slot, post.token, post.kind, post.generation, pid);
        let object = BoxValue::new(ruby.obj_wrap(object).as_value());
        server.call(ruby, "enter_role", (*object,))?;
        let child = Self { house, post, object, forks: process::forks() };
        child.title(ruby, format_args!("init"));
        Ok(child.report(ruby, Report::Registered { pid })?.then_some(child))
    }

    /// Its line on the scoreboard.
    pub fn line(&self) -> &'static Line {
        self.house.scoreboard.line(self.post.slot)
    }

    /// Whether this is the process that took up the post, and not a copy of it: an application may fork, and return in
    /// both processes.
    pub fn is_itself(&self) -> bool {
        self.forks == process::forks()
    }

    /// Whether the monitor still counts on this process.
    pub fn is_wanted(&self) -> bool {
        self.line().belongs_to(self.post.token)
    }

    /// Whether a child that has nothing in hand is to end: a signal says so, or nobody counts on it any more.
    ///
    /// The user may have trapped the signal that comes at the monitor's death, and an application's subprocess may hold
    /// a copy of the channel that is closed then.
    pub fn must_leave(&self, ruby: &Ruby) -> Result<bool, Error> {
        ruby.thread_check_ints()?;
        let told = signals::take(libc::SIGTERM) || signals::take(libc::SIGQUIT);
        if process::is_child_of(self.house.monitor) {
            return Ok(told || !self.is_wanted());
        }
        // Whatever runs at its exit, nobody watches over it any more.
        watcher::end_soon();
        Ok(true)
    }

    /// Logs an order that is none for a child of this kind.
    pub fn complain(&self, ruby: &Ruby, order: Order) -> Result<(), Error> {
        let line = format!("{} got an order it cannot carry out: {order:?}", self.name()?);
        self.house.server.log(ruby, pitchfork_core::plan::Level::Error, &line);
        Ok(())
    }

    /// Tells the monitor something. `false` if there is nobody to tell.
    pub fn report(&self, ruby: &Ruby, report: Report) -> Result<bool, Error> {
        match self.post.channel.send(&report.encode(), None) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.errno(), Some(libc::EPIPE | libc::ECONNRESET)) => Ok(false),
            Err(error) => Err(raise(ruby, &error)),
        }
    }

    /// The next order, and the channel for the child to be made, if there is one. A channel that was closed is an
    /// order to leave: the monitor is gone, or has given this process up.
    ///
    /// What every child does alike is done here, between two of its own orders: logs are reopened before a fork that
    /// was ordered later, and by a process that was forked before.
    pub fn next_order(&self, ruby: &Ruby) -> Result<Option<(Order, Option<OwnedFd>)>, Error> {
        loop {
            match self.post.channel.receive().map_err(|error| raise(ruby, &error))? {
                Received::Empty => return Ok(None),
                Received::Closed => return Ok(Some((Order::Leave { drain: false }, None))),
                Received::Message { bytes, len, descriptor } => {
                    match Order::decode(&bytes[..len]).map_err(|error| raise(ruby, &error))? {
                        Order::ReopenLogs => drop(self.house.server.call(ruby, "reopen_logs", ())?),
                        order => return Ok(Some((order, descriptor))),
                    }
                }
            }
        }
    }

    /// Waits for an order, a signal, the monitor's death, or the time to give a sign of life.
    pub fn wait_for_order(&self, ruby: &Ruby) -> Result<(), Error> {
        let timeout = PollTimeout::try_from(self.heartbeat()).unwrap_or(PollTimeout::MAX);
        let channel = self.post.channel.as_fd();
        // Where the kernel does not tell of the death, the channel is looked at twice.
        let death = self.house.death.as_ref().map_or(channel, |death| death.as_fd());
        let mut watched = [channel, death].map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
        gvl::wait(ruby, || poll(&mut watched, timeout)).map(drop)
    }

    /// How often an idle child gives a sign of life.
    pub fn heartbeat(&self) -> Millis {
        self.house.settings.hard_timeout / 2
    }

    /// Gives a sign of life, and promises the next one within `time`.
    pub fn promise(&self, time: Millis) {
        self.line().set_deadline(clock::monotonic() + time);
    }

    /// Sets what `ps` shows of this process.
    pub fn title(&self, ruby: &Ruby, status: fmt::Arguments<'_>) {
        let generation = self.post.generation;
        match self.post.kind {
            Kind::Mold => set_title(ruby, format_args!("pitchfork-rs (gen:{generation}) mold - {status}")),
            Kind::Service => set_title(ruby, format_args!("pitchfork-rs (gen:{generation}) service - {status}")),
            Kind::Reactor => set_title(ruby, format_args!("pitchfork-rs reactor")),
            Kind::Worker(nr) => {
                set_title(ruby, format_args!("pitchfork-rs (gen:{generation}) worker[{nr}] - {status}"));
            }
        }
    }

    /// The name that log lines give this process.
    pub fn name(&self) -> Result<String, Error> {
        self.object.funcall("to_log", ())
    }

    /// Runs a hook that gets the server and this child, and without which this process must not go on: an error in
    /// it is logged, and becomes an exit.
    pub fn hook(&self, ruby: &Ruby, name: &str) -> Result<(), Error> {
        self.house.server.hook_or_end(ruby, name, (*self.object,))
    }
}

/// The Ruby exception for an error of the core. This is the only place where one becomes the other.
pub fn raise(ruby: &Ruby, error: &CoreError) -> Error {
    let (Some(errno), Some(operation)) = (error.errno(), error.operation()) else {
        return Error::new(ruby.exception_runtime_error(), error.to_string());
    };
    // Becomes the class of this errno, whose message begins with the reason.
    let exception = ruby.exception_system_call_error().new_instance((operation, errno));
    exception.map_or_else(|error| error, Error::from)
}
