//! Bytes that came on a connection, and how far they have been understood.

use std::io::{self, Read};

use pitchfork_core::http::Head;
use socket2::Socket;

/// How much is asked of the kernel at once.
const READ_SIZE: usize = 16 * 1024;
/// More memory than this is not kept for the next request.
const KEPT: usize = 4 * READ_SIZE;

/// Bytes read from a socket. The memory is kept from one connection to the next, and cleared by nobody.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// What was read and not yet consumed.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Whether everything was consumed.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Forgets so many bytes at the beginning.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.is_empty() {
            self.clear();
        }
    }

    /// Forgets everything, and memory beyond what an ordinary request needs.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        if self.bytes.len() > KEPT {
            self.bytes = Vec::new();
        }
    }

    /// Adds bytes that somebody else has read, and that come behind those that are here.
    pub fn append(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.bytes[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Reads once. Gives the number of bytes, and whether there may be more: a stream that gives fewer than it was asked
    /// for had no more; see epoll(7).
    pub fn read_from(&mut self, mut socket: &Socket) -> io::Result<(usize, bool)> {
        self.make_room(READ_SIZE / 2);
        let space = &mut self.bytes[self.end..];
        let read = socket.read(space)?;
        let is_full = read == space.len();
        self.end += read;
        Ok((read, is_full))
    }

    fn make_room(&mut self, wanted: usize) {
        if self.bytes.len() - self.end >= wanted {
            return;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() - self.end < wanted {
            self.bytes.resize((self.bytes.len() * 2).max(READ_SIZE).max(self.end + wanted), 0);
        }
    }
}

/// A request on its way in.
#[derive(Debug, Default)]
pub struct Intake {
    /// What has come.
    pub buffer: Buffer,
    /// What its beginning means.
    pub head: Head,
}

/// Intakes that nobody uses, so that an ordinary request needs no memory of its own, and an idle connection has none.
#[derive(Debug, Default)]
#[allow(clippy::vec_box)] // they go to connections and come back as they are
pub struct Spares(Vec<Box<Intake>>);

impl Spares {
    /// One is in use at a time; those of connections that have sent half a request come in addition.
    const MOST: usize = 4;

    /// One that is empty.
    pub fn take(&mut self) -> Box<Intake> {
        self.0.pop().unwrap_or_default()
    }

    /// Takes one back.
    pub fn put(&mut self, mut intake: Box<Intake>) {
        if self.0.len() < Self::MOST {
            intake.buffer.clear();
            intake.head.clear();
            self.0.push(intake);
        }
    }
}
