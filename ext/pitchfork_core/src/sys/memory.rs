//! How much memory a process holds, as `/proc/PID/smaps_rollup` tells it.

use std::fs;

use crate::children::Pid;
use crate::error::Error;

/// In kilobytes, as proc(5) gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident set: all pages that are in memory.
    pub rss: u64,
    /// Proportional set: each page divided by the number of processes that map it.
    pub pss: u64,
    /// Pages that others map too.
    pub shared: u64,
    /// Pages that this process alone holds and has written.
    pub private_dirty: u64,
}

impl Memory {
    /// Measures a process. Fails if it is gone, or not ours to look at.
    pub fn of(pid: Pid) -> Result<Self, Error> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).map_err(|error| Error::system("read", path.clone(), error))?;
        Self::parse(&text).map_err(|field| Error::Proc { path, field })
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let field = |name: &'static str| {
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(key, _)| *key == name)
                .and_then(|(_, value)| value.trim().strip_suffix(" kB")?.parse::<u64>().ok())
                .ok_or(name)
        };
        Ok(Self {
            rss: field("Rss")?,
            pss: field("Pss")?,
            shared: field("Shared_Clean")? + field("Shared_Dirty")?,
            private_dirty: field("Private_Dirty")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLUP: &str = "55d0-7ffd ---p 00000000 00:00 0    [rollup]\nRss:   1784 kB\nPss:    800 kB\n\
        Pss_Dirty: 120 kB\nShared_Clean:  1500 kB\nShared_Dirty:  44 kB\nPrivate_Clean:  100 kB\n\
        Private_Dirty:  140 kB\n";

    #[test]
    fn a_rollup_is_read_field_by_field() {
        let memory = Memory::parse(ROLLUP).unwrap();
        assert_eq!(memory, Memory { rss: 1784, pss: 800, shared: 1544, private_dirty: 140 });
    }

    #[test]
    fn a_missing_field_is_named() {
        assert_eq!(Memory::parse("Rss: 1 kB\n"), Err("Pss"));
        assert_eq!(Memory::parse("Rss: many kB\n"), Err("Rss"));
    }

    #[test]
    fn this_process_has_memory() {
        let memory = Memory::of(std::process::id().cast_signed()).unwrap();
        assert!(memory.rss >= memory.pss && memory.pss > 0);
    }
}
