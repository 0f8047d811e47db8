//! Where a request body is kept between the socket and the application.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use pitchfork_core::reactor::StoredBody;

/// The bytes of a body from some position on: all of them if they are kept, in memory up to a limit and beyond it in
/// a file that has no name; else those that were not read yet.
#[derive(Debug)]
pub struct Store {
    kind: Kind,
    /// The position of the first byte in `memory`.
    start: u64,
    end: u64,
    memory: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Memory { limit: u64 },
    File(File),
    Passing,
}

impl Store {
    /// An empty store that keeps everything, up to `limit` bytes of it in memory.
    pub fn keeping(limit: u64) -> Self {
        Self { kind: Kind::Memory { limit }, start: 0, end: 0, memory: Vec::new() }
    }

    /// An empty store that forgets what was read.
    pub fn passing() -> Self {
        Self { kind: Kind::Passing, start: 0, end: 0, memory: Vec::new() }
    }

    /// A store of all that there is.
    pub fn full(body: StoredBody) -> Self {
        match body {
            StoredBody::Memory(memory) => {
                let end = memory.len() as u64;
                Self { kind: Kind::Memory { limit: end }, start: 0, end, memory }
            }
            StoredBody::File { file, length } => {
                Self { kind: Kind::File(file.into()), start: 0, end: length, memory: Vec::new() }
            }
        }
    }

    /// The position behind the last byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.end + bytes.len() as u64;
        if matches!(self.kind, Kind::Memory { limit } if end > limit) {
            let file = tempfile::tempfile()?;
            file.write_all_at(&self.memory, 0)?;
            self.memory = Vec::new();
            self.kind = Kind::File(file);
        }
        match &self.kind {
            Kind::File(file) => file.write_all_at(bytes, self.end)?,
            Kind::Memory { .. } | Kind::Passing => self.memory.extend_from_slice(bytes),
        }
        self.end = end;
        Ok(())
    }

    /// Appends up to `most` bytes from `position` on to `out`.
    pub fn read_at(&self, position: u64, most: usize, out: &mut Vec<u8>) -> io::Result<usize> {
        let available = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX).min(most);
        if let Kind::File(file) = &self.kind {
            let before = out.len();
            out.resize(before + available, 0);
            file.read_exact_at(&mut out[before..], position)?;
        } else {
            let from = usize::try_from(position.saturating_sub(self.start)).unwrap_or(usize::MAX);
            out.extend_from_slice(self.memory.get(from..from + available).unwrap_or_default());
        }
        Ok(available)
    }

    /// Says that nobody will read before `position` again, unless everything is kept anyway.
    pub fn forget_before(&mut self, position: u64) {
        if let Kind::Passing = self.kind {
            let read = usize::try_from(position.saturating_sub(self.start)).unwrap_or(usize::MAX);
            self.memory.drain(..read.min(self.memory.len()));
            self.start = position;
        }
    }
}
