//! `PitchforkRs::MemInfo`: how much memory a process holds.

use std::cell::Cell;

use magnus::prelude::*;
use magnus::{Error, RModule, RString, Ruby, TryConvert, Value, function, method};
use pitchfork_core::children::Pid;
use pitchfork_core::sys::memory::Memory;

use crate::process::child::raise;

/// A reading of `/proc/PID/smaps_rollup`, in kilobytes.
#[magnus::wrap(class = "PitchforkRs::MemInfo", free_immediately, size)]
pub struct MemInfo {
    pid: Pid,
    memory: Cell<Memory>,
}

impl MemInfo {
    /// `new(pid)`: of an Integer, or of a String such as the names in `/proc` and what `pgrep` prints.
    fn new(ruby: &Ruby, pid: Value) -> Result<Self, Error> {
        let pid = pid_from(ruby, pid)?;
        let memory = Memory::of(pid).map_err(|error| raise(ruby, &error))?;
        Ok(Self { pid, memory: Cell::new(memory) })
    }

    fn rss(&self) -> u64 {
        self.memory.get().rss
    }

    fn pss(&self) -> u64 {
        self.memory.get().pss
    }

    fn shared_memory(&self) -> u64 {
        self.memory.get().shared
    }

    fn private_dirty(&self) -> u64 {
        self.memory.get().private_dirty
    }

    /// How much of the parent's memory this process shares, in percent.
    #[allow(clippy::cast_precision_loss)] // kilobytes stay far below 2^52
    fn cow_efficiency(&self, parent: &Self) -> f64 {
        self.shared_memory() as f64 / parent.rss() as f64 * 100.0
    }

    fn update(ruby: &Ruby, rb_self: magnus::typed_data::Obj<Self>) -> Result<magnus::typed_data::Obj<Self>, Error> {
        rb_self.memory.set(Memory::of(rb_self.pid).map_err(|error| raise(ruby, &error))?);
        Ok(rb_self)
    }
}

fn pid_from(ruby: &Ruby, pid: Value) -> Result<Pid, Error> {
    let Some(text) = RString::from_value(pid) else { return Pid::try_convert(pid) };
    text.to_string()?.parse().map_err(|_| {
        Error::new(ruby.exception_arg_error(), format!("got {}, wanted the pid of a process", text.inspect()))
    })
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("MemInfo", ruby.class_object())?;
    class.define_singleton_method("new", function!(MemInfo::new, 1))?;
    class.define_method("rss", method!(MemInfo::rss, 0))?;
    class.define_method("pss", method!(MemInfo::pss, 0))?;
    class.define_method("shared_memory", method!(MemInfo::shared_memory, 0))?;
    class.define_method("private_dirty", method!(MemInfo::private_dirty, 0))?;
    class.define_method("cow_efficiency", method!(MemInfo::cow_efficiency, 1))?;
    class.define_method("update", method!(MemInfo::update, 0))?;
    Ok(())
}
