//! The monitor: turns what happens into events, and what is decided into deeds.

mod listening;
mod logs;
mod reactor;
mod reaping;
mod user_code;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

use magnus::{Error, Ruby, Value};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use pitchfork_core::children::{Kind, Millis, Pid, Token};
use pitchfork_core::error::Error as CoreError;
use pitchfork_core::listen::Listeners;
use pitchfork_core::message::{Order, Report};
use pitchfork_core::plan::{self, Action, Event, Kill, Level, Phase, Signal, State};
use pitchfork_core::reactor::{Counts, Link, Queues};
use pitchfork_core::scoreboard::Scoreboard;
use pitchfork_core::sys::bell::Bell;
use pitchfork_core::sys::channel::{Channel, Received};
use pitchfork_core::sys::{clock, process, stack};

use super::child::{House, Post, Settings};
use super::mold::Mold;
use super::server::Server;
use super::{Role, prepare, signals};
use crate::vm::fork::{Side, fork};
use crate::vm::gvl;

/// The monitor looks at the scoreboard at least this often.
const TICK: Millis = 1_000;

/// How far to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Until a mold can fork.
    Mold,
    /// Until all workers are ready.
    Workers,
    /// Until the server has stopped.
    End,
}

/// Why the monitor's loop was left.
pub enum Outcome {
    /// The goal is reached.
    Reached,
    /// The server has stopped with this status.
    Stopped(i32),
    /// This is not the monitor any more, but a child that it forked.
    Child(Role),
}

/// The first process.
pub struct Monitor {
    server: Server,
    settings: Settings,
    scoreboard: Scoreboard,
    listeners: Listeners,
    /// Tells workers that others have come or gone, if that matters to them.
    bell: Option<Arc<Bell>>,
    /// The workers that were ready when it last rang.
    present: Vec<u32>,
    state: State,
    channels: BTreeMap<Token, Channel>,
    /// All ends of the reactor's queues, so that what is in them survives whoever should have read it. They are there as
    /// long as this process is the monitor.
    queues: Option<Queues>,
    counts: Counts,
    epoll: Epoll,
    /// Zombies that are none of ours, and when each was seen first.
    strangers: BTreeMap<Pid, Millis>,
    status: Option<i32>,
}

impl Monitor {
    /// A server of which nothing has been started yet, and that listens nowhere.
    pub fn new(server: Server, settings: Settings, plan: plan::Settings) -> Result<Self, CoreError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|errno| CoreError::system("epoll_create1", "the monitor", errno))?;
        let scoreboard = Scoreboard::new(plan.slots)?;
        scoreboard.set_wanted(plan.workers);
        process::adopt_orphans()?;
        Ok(Self {
            server,
            settings,
            scoreboard,
            listeners: Listeners::default(),
            bell: None,
            present: Vec::new(),
            state: State::new(plan),
            channels: BTreeMap::new(),
            queues: Some(Queues::new()?),
            counts: Counts::new()?,
            epoll,
            strangers: BTreeMap::new(),
            status: None,
        })
    }

    /// The shared lines.
    pub fn scoreboard(&self) -> Scoreboard {
        self.scoreboard
    }

    /// What the reactor tells about itself.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Runs until the goal is reached or the server has stopped.
    pub fn run(&mut self, ruby: &Ruby, goal: Goal) -> Result<Outcome, Error> {
        if self.settings.mold_prepare {
            prepare::settle(ruby)?;
        }
        if let Some(role) = self.handle(ruby, Event::Start, None)? {
            return Ok(Outcome::Child(role));
        }
        loop {
            if let Some(status) = self.status {
                return Ok(Outcome::Stopped(status));
            }
            let reached = match goal {
                Goal::Mold => self.state.mold().is_some(),
                Goal::Workers => self.state.is_complete(),
                Goal::End => false,
            };
            if reached {
                return Ok(Outcome::Reached);
            }
            let turned = match self.turn(ruby) {
                Err(error) => self.heed_thread(ruby, error)?,
                Ok(role) => role,
            };
            if let Some(role) = turned {
                return Ok(Outcome::Child(role));
            }
        }
    }

    /// Waits for something to happen, and sees to it. A role means that this process is a new child.
    fn turn(&mut self, ruby: &Ruby) -> Result<Option<Role>, Error> {
        let now = clock::monotonic();
        let wait = self.state.next_wake(now).map_or(TICK, |at| (at - now).min(TICK));
        let timeout = EpollTimeout::try_from(wait).unwrap_or(EpollTimeout::ZERO);
        let mut events = [EpollEvent::empty(); 64];
        let ready = gvl::wait(ruby, || self.epoll.wait(&mut events, timeout))?;
        let ready = ready.and_then(Result::ok).unwrap_or(0);

        for event in &events[..ready] {
            if let Some(role) = self.listen_to(ruby, Token(event.data()))? {
                return Ok(Some(role));
            }
        }
        // Before anything that may take its time in a hook.
        if let Some(role) = self.handle(ruby, Event::Tick, None)? {
            return Ok(Some(role));
        }
        if let Some(role) = self.reap_all(ruby)? {
            return Ok(Some(role));
        }
        self.see_to_logs(ruby)?;
        for (number, signal) in [
            (libc::SIGINT, Signal::Int),
            (libc::SIGTERM, Signal::Term),
            (libc::SIGQUIT, Signal::Quit),
            (libc::SIGUSR2, Signal::Usr2),
            (libc::SIGTTIN, Signal::Ttin),
            (libc::SIGTTOU, Signal::Ttou),
        ] {
            if signals::take(number)
                && let Some(role) = self.handle(ruby, Event::Signal(signal), None)?
            {
                return Ok(Some(role));
            }
        }
        Ok(None)
    }

    /// Takes in all that a child has said.
    fn listen_to(&mut self, ruby: &Ruby, token: Token) -> Result<Option<Role>, Error> {
        while let Some(channel) = self.channels.get(&token) {
            let event = match channel.receive() {
                Ok(Received::Empty) => break,
                Ok(Received::Closed) => {
                    let _ = self.epoll.delete(channel);
                    self.channels.remove(&token);
                    Event::Closed(token)
                }
                Ok(Received::Message { bytes, len, .. }) => match Report::decode(&bytes[..len]) {
                    Ok(report) => Event::Message(token, report),
                    Err(error) => {
                        self.server.log(ruby, Level::Error, &error.to_string());
                        continue;
                    }
                },
                Err(error) => {
                    self.server.log(ruby, Level::Error, &error.to_string());
                    break;
                }
            };
            if let Some(role) = self.handle(ruby, event, None)? {
                return Ok(Some(role));
            }
        }
        Ok(None)
    }

    /// Puts one event before the plan, and does what it decides. `status` is how a reaped child ended.
    fn handle(&mut self, ruby: &Ruby, event: Event, status: Option<Value>) -> Result<Option<Role>, Error> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let actions = plan::step(&mut self.state, event, &self.scoreboard, clock::monotonic());
            self.scoreboard.set_wanted(self.state.wanted());
            if self.state.phase() != Phase::Running {
                self.scoreboard.set_shutting_down();
            }
            self.tell_who_is_present();
            self.tell_of_reactor();
            for action in actions {
                if let Some(role) = self.perform(ruby, action, status, &mut events)? {
                    return Ok(Some(role));
                }
            }
        }
        Ok(None)
    }

    fn perform(
        &mut self,
        ruby: &Ruby,
        action: Action,
        status: Option<Value>,
        events: &mut VecDeque<Event>,
    ) -> Result<Option<Role>, Error> {
        match action {
            Action::Boot { token, slot } => return Ok(self.boot(ruby, token, slot, events)),
            Action::StartReactor { token, slot } => self.start_reactor(ruby, token, slot, events),
            Action::Spawn { forker, token, slot, kind, generation } => {
                let order = Order::Spawn { token, kind, slot, generation };
                self.order_child(ruby, forker, token, (slot, kind, generation), order, events);
            }
            Action::Promote { forker, token, slot, generation } => {
                let order = Order::Promote { token, slot, generation };
                self.order_child(ruby, forker, token, (slot, Kind::Mold, generation), order, events);
            }
            Action::Dismiss { token, drain } => self.dismiss(ruby, token, drain),
            Action::Conclude(token) => self.conclude(token),
            Action::Signal { token, pid, kill } => self.signal(ruby, token, pid, kill, events),
            Action::Forget { token, slot, pid } => {
                if let Some(channel) = self.channels.remove(&token) {
                    let _ = self.epoll.delete(&channel);
                    if pid.is_none() {
                        kill_latecomer(&channel);
                    }
                }
                self.scoreboard.revoke(slot);
                self.nudge();
            }
            Action::Disown { slot } => self.scoreboard.revoke(slot),
            Action::HardTimeout(child) => user_code::heed_exit(ruby, self.tell_hard_timeout(ruby, &child), events)?,
            Action::Departed(child) => user_code::heed_exit(ruby, self.tell_departure(ruby, &child, status), events)?,
            Action::LogEnd(child) => self.log_end(ruby, &child, status),
            Action::Current(mold) => self.scoreboard.set_current_mold(mold),
            Action::Listen => self.listen(ruby, events),
            Action::StopListening => self.stop_listening(ruby),
            Action::Log(level, line) => self.server.log(ruby, level, &line),
            Action::Exit(status) => self.status = Some(status),
        }
        Ok(None)
    }

    /// Forks a mold that loads the application. Returns a role in the child.
    fn boot(&mut self, ruby: &Ruby, token: Token, slot: u32, events: &mut VecDeque<Event>) -> Option<Role> {
        let monitor = std::process::id().cast_signed();
        let channel = self.fork_child(ruby, token, slot, Kind::Mold, events)?;
        // The monitor's ends of the channels of all others.
        self.channels.clear();
        let house = House {
            server: self.server,
            scoreboard: self.scoreboard,
            monitor,
            death: process::watch(monitor).map(Arc::new),
            settings: self.settings,
            listeners: std::mem::take(&mut self.listeners),
            bell: self.bell.take(),
            link: Arc::new(Link::new(self.queues.take().unwrap_or_else(|| process::leave(1)), self.counts)),
        };
        let post = Post { token, kind: Kind::Mold, generation: 0, slot, channel };
        let mold = Mold { house: Rc::new(house), post, handler: None };
        Some(Role::Mold(Box::new(mold)))
    }

    /// Forks a child of this process's own. Gives the child's end of its channel in the child, and nothing here.
    fn fork_child(
        &mut self,
        ruby: &Ruby,
        token: Token,
        slot: u32,
        kind: Kind,
        events: &mut VecDeque<Event>,
    ) -> Option<Channel> {
        let (ours, theirs) = match Channel::pair() {
            Ok(ends) => ends,
            Err(error) => {
                self.server.log(ruby, Level::Error, &format!("cannot fork a {kind}: {error}"));
                events.push_back(Event::Failed(token));
                return None;
            }
        };
        self.scoreboard.assign(slot, token, kind, 0, None);
        // What is left of it would go on to every process of the server.
        stack::release_unused();
        match fork(ruby) {
            Ok(Side::Parent { child }) => {
                drop(theirs);
                self.adopt(token, ours, events);
                events.push_back(Event::Message(token, Report::Forked { pid: child }));
            }
            Ok(Side::Child) => return Some(theirs),
            Err(error) => {
                self.server.log_error(ruby, &format!("cannot fork a {kind}"), &error);
                events.push_back(Event::Failed(token));
            }
        }
        None
    }

    /// Has one child fork another.
    fn order_child(
        &mut self,
        ruby: &Ruby,
        forker: Token,
        token: Token,
        (slot, kind, generation): (u32, Kind, u32),
        order: Order,
        events: &mut VecDeque<Event>,
    ) {
        self.scoreboard.assign(slot, token, kind, generation, Some(forker));
        let sent = Channel::pair().and_then(|(ours, theirs)| {
            let channel = self
                .channels
                .get(&forker)
                .ok_or_else(|| CoreError::system("sendmsg", "a child that is leaving", nix::Error::EPIPE))?;
            channel.send(&order.encode(), Some(theirs.as_fd()))?;
            Ok(ours)
        });
        match sent {
            Ok(ours) => {
                self.adopt(token, ours, events);
                self.announce(forker);
            }
            Err(error) => {
                self.server.log(ruby, Level::Error, &format!("cannot order a fork: {error}"));
                events.push_back(Event::Failed(token));
            }
        }
    }

    fn adopt(&mut self, token: Token, channel: Channel, events: &mut VecDeque<Event>) {
        if self.epoll.add(&channel, EpollEvent::new(EpollFlags::EPOLLIN, token.0)).is_err() {
            events.push_back(Event::Failed(token));
        }
        self.channels.insert(token, channel);
    }

    /// Tells a busy child that something waits on its channel.
    fn announce(&self, token: Token) {
        if let Some(child) = self.state.children().get(token) {
            self.scoreboard.line(child.slot).set_mail();
        }
    }

    fn dismiss(&mut self, ruby: &Ruby, token: Token, drain: bool) {
        let sent = self.channels.get(&token).map(|channel| channel.send(&Order::Leave { drain }.encode(), None));
        self.announce(token);
        if let Some(Ok(())) = sent {
            return;
        }
        // It does not read, or it has closed its end and is on its way out.
        if let Some(child) = self.state.children().get(token)
            && let Some(pid) = child.pid
        {
            self.server.log(ruby, Level::Info, &format!("Failed to send SIGTERM to {child}"));
            let _ = process::kill(pid, libc::SIGTERM);
        }
    }

    fn signal(&mut self, ruby: &Ruby, token: Token, pid: Pid, kill: Kill, events: &mut VecDeque<Event>) {
        let number = match kill {
            Kill::Int => libc::SIGINT,
            Kill::Term => libc::SIGTERM,
            Kill::Kill => libc::SIGKILL,
            Kill::Overdue => self.timeout_signal(ruby, pid),
        };
        match process::kill(pid, number) {
            Ok(()) => {}
            Err(error) if error.errno() == Some(libc::ESRCH) => events.push_back(Event::Vanished(token)),
            Err(error) => self.server.log(ruby, Level::Error, &error.to_string()),
        }
    }
}

/// A child that is forgotten before its pid was known may have said it just now.
fn kill_latecomer(channel: &Channel) {
    while let Ok(Received::Message { bytes, len, .. }) = channel.receive() {
        if let Ok(Report::Forked { pid } | Report::Registered { pid }) = Report::decode(&bytes[..len]) {
            let _ = process::kill(pid, libc::SIGKILL);
        }
    }
}
