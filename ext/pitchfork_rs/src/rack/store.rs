//! Where a request body is kept, so that the application can read it again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Memory up to a limit, beyond it a file that has no name.
#[derive(Debug)]
pub struct Store {
    limit: u64,
    len: u64,
    memory: Vec<u8>,
    file: Option<File>,
}

impl Store {
    /// An empty store that keeps up to `limit` bytes in memory.
    pub fn new(limit: u64) -> Self {
        Self { limit, len: 0, memory: Vec::new(), file: None }
    }

    /// How many bytes it holds.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() && self.len + bytes.len() as u64 > self.limit {
            let file = tempfile::tempfile()?;
            file.write_all_at(&self.memory, 0)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &self.file {
            Some(file) => file.write_all_at(bytes, self.len)?,
            None => self.memory.extend_from_slice(bytes),
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Appends up to `most` bytes from `position` on to `out`.
    pub fn read_at(&self, position: u64, most: usize, out: &mut Vec<u8>) -> io::Result<usize> {
        let available = usize::try_from(self.len.saturating_sub(position)).unwrap_or(usize::MAX).min(most);
        let Some(file) = &self.file else {
            let start = usize::try_from(position).unwrap_or(usize::MAX).min(self.memory.len());
            out.extend_from_slice(&self.memory[start..start + available]);
            return Ok(available);
        };
        let before = out.len();
        out.resize(before + available, 0);
        file.read_exact_at(&mut out[before..], position)?;
        Ok(available)
    }
}
