//! `PitchforkRs::Worker`: what hooks and applications get to know of a process, be it a worker, a mold or the service.

use magnus::prelude::*;
use magnus::{Error, RModule, Ruby, Value, method};
use pitchfork_core::children::{self, Kind, Pid, Token};
use pitchfork_core::scoreboard::Scoreboard;

/// One process, alive or just departed.
#[magnus::wrap(class = "PitchforkRs::Worker", free_immediately, size)]
pub struct Worker {
    kind: Kind,
    generation: u32,
    pid: Pid,
    slot: u32,
    token: Token,
    scoreboard: Scoreboard,
    departed: Option<Departed>,
}

/// What the scoreboard does not tell any more.
struct Departed {
    requests: u64,
    was_ready: bool,
    was_leaving: bool,
}

impl Worker {
    /// A process that keeps the scoreboard line `slot`.
    pub fn living(scoreboard: Scoreboard, slot: u32, token: Token, kind: Kind, generation: u32, pid: Pid) -> Self {
        Self { kind, generation, pid, slot, token, scoreboard, departed: None }
    }

    /// A process that was reaped.
    pub fn departed(scoreboard: Scoreboard, child: &children::Child, requests: u64) -> Self {
        let departed = Departed { requests, was_ready: child.ready_at.is_some(), was_leaving: child.is_dismissed() };
        Self {
            kind: child.kind,
            generation: child.generation,
            pid: child.pid.unwrap_or(0),
            slot: child.slot,
            token: child.token,
            scoreboard,
            departed: Some(departed),
        }
    }

    fn nr(&self) -> Option<u32> {
        match self.kind {
            Kind::Worker(nr) => Some(nr),
            Kind::Mold | Kind::Service | Kind::Reactor => None,
        }
    }

    fn pid(&self) -> Pid {
        self.pid
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn requests_count(&self) -> u64 {
        match &self.departed {
            Some(departed) => departed.requests,
            None => self.scoreboard.line(self.slot).requests(),
        }
    }

    fn is_mold(&self) -> bool {
        self.kind == Kind::Mold
    }

    fn is_worker(&self) -> bool {
        matches!(self.kind, Kind::Worker(_))
    }

    fn is_service(&self) -> bool {
        self.kind == Kind::Service
    }

    fn is_ready(&self) -> bool {
        match &self.departed {
            Some(departed) => departed.was_ready,
            None => self.scoreboard.line(self.slot).is_ready(),
        }
    }

    fn is_exiting(&self) -> bool {
        match &self.departed {
            Some(departed) => departed.was_leaving,
            None => self.scoreboard.is_shutting_down() || !self.scoreboard.line(self.slot).belongs_to(self.token),
        }
    }

    fn is_outdated(&self) -> bool {
        self.departed.is_some() || self.scoreboard.is_outdated(self.slot)
    }

    fn to_log(&self) -> String {
        format!("{} gen={} pid={}", self.kind, self.generation, self.pid)
    }

    fn inspect(&self) -> String {
        format!("#<PitchforkRs::Worker {}>", self.to_log())
    }

    /// Equal to an Integer that is its number, and to another object for the same process.
    fn is_equal(ruby: &Ruby, rb_self: &Self, other: Value) -> Result<bool, Error> {
        if other.is_kind_of(ruby.class_integer()) {
            return Ok(rb_self.nr().map(i64::from) == Some(i64::try_convert(other)?));
        }
        Ok(<&Self>::try_convert(other).is_ok_and(|other| other.token == rb_self.token))
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Worker", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("nr", method!(Worker::nr, 0))?;
    class.define_method("pid", method!(Worker::pid, 0))?;
    class.define_method("generation", method!(Worker::generation, 0))?;
    class.define_method("requests_count", method!(Worker::requests_count, 0))?;
    class.define_method("mold?", method!(Worker::is_mold, 0))?;
    class.define_method("worker?", method!(Worker::is_worker, 0))?;
    class.define_method("service?", method!(Worker::is_service, 0))?;
    class.define_method("ready?", method!(Worker::is_ready, 0))?;
    class.define_method("exiting?", method!(Worker::is_exiting, 0))?;
    class.define_method("outdated?", method!(Worker::is_outdated, 0))?;
    class.define_method("to_log", method!(Worker::to_log, 0))?;
    class.define_method("inspect", method!(Worker::inspect, 0))?;
    class.define_method("==", method!(Worker::is_equal, 1))?;
    Ok(())
}
