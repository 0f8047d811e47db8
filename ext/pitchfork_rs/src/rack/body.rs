//! The body of a request: read from the socket when somebody asks for it, and kept.

use std::io::{self, Read, Write};
use std::sync::Arc;

use magnus::{Error, Ruby};
use pitchfork_core::children::Millis;
use pitchfork_core::http::response::CONTINUE;
use pitchfork_core::http::{BodyDecoder, Reject};
use pitchfork_core::sys::clock;
use socket2::Socket;

use super::connection::{Direction, wait_for};
use super::store::Store;
use crate::process::clockwork;

/// A client that sends nothing for so long is given up.
const SILENCE: Millis = 30_000;
const CHUNK: usize = 16 * 1024;

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The client has gone away.
    #[error("the client closed the connection in the middle of the request body")]
    Gone,
    /// The client has stopped sending.
    #[error("the client sent nothing of the request body for {} seconds", SILENCE / 1000)]
    Late,
    /// What it sent is no body.
    #[error("malformed request body: {0}")]
    Refused(Reject),
    /// It could not be kept.
    #[error("the request body could not be buffered: {0}")]
    Storage(io::Error),
    /// Ruby interrupted the wait.
    #[error("interrupted")]
    Interrupted(Error),
}

/// One request body.
#[derive(Debug)]
pub struct Body {
    /// `None` once the request is over: an application may hold on to `rack.input`, but not to the connection.
    socket: Option<Arc<Socket>>,
    decoder: BodyDecoder,
    store: Store,
    position: u64,
    expects_continue: bool,
    refused: Option<u16>,
}

impl Body {
    /// A body of which `early` arrived together with the head. `None` means that it is malformed right there.
    pub fn new(
        socket: Arc<Socket>,
        mut decoder: BodyDecoder,
        early: &[u8],
        expects_continue: bool,
        memory: u64,
    ) -> Result<Self, Failure> {
        let mut store = Store::new(memory);
        let mut bytes = Vec::new();
        decoder.decode(early, &mut bytes).map_err(Failure::Refused)?;
        store.append(&bytes).map_err(Failure::Storage)?;
        // A client that sends without waiting does not need to be told.
        let expects_continue = expects_continue && early.is_empty();
        Ok(Self { socket: Some(socket), decoder, store, position: 0, expects_continue, refused: None })
    }

    /// Whether some of it is still to come.
    pub fn is_unread(&self) -> bool {
        !self.decoder.is_done()
    }

    /// The status to answer with if reading it has failed because of the client.
    pub fn refused(&self) -> Option<u16> {
        self.refused
    }

    /// Lets go of the connection.
    pub fn detach(&mut self) {
        self.socket = None;
    }

    /// Back to the first byte.
    pub fn rewind(&mut self) {
        self.position = 0;
    }

    /// The whole length in bytes, read to the end if only the end tells.
    pub fn size(&mut self, ruby: &Ruby) -> Result<u64, Failure> {
        if let Some(remaining) = self.decoder.remaining() {
            return Ok(self.store.len() + remaining);
        }
        self.fill(ruby, u64::MAX)?;
        Ok(self.store.len())
    }

    /// Appends up to `most` bytes to `out`; fewer only at the end.
    pub fn read(&mut self, ruby: &Ruby, most: u64, out: &mut Vec<u8>) -> Result<usize, Failure> {
        self.fill(ruby, self.position.saturating_add(most))?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let read = self.store.read_at(self.position, most, out).map_err(Failure::Storage)?;
        self.position += read as u64;
        Ok(read)
    }

    /// Appends the rest of the line, its end included, to `out`.
    pub fn read_line(&mut self, ruby: &Ruby, out: &mut Vec<u8>) -> Result<usize, Failure> {
        let before = out.len();
        loop {
            let seen = out.len();
            if self.read(ruby, 4096, out)? == 0 {
                return Ok(out.len() - before);
            }
            if let Some(at) = out[seen..].iter().position(|&byte| byte == b'\n') {
                let end = seen + at + 1;
                self.position -= (out.len() - end) as u64;
                out.truncate(end);
                return Ok(end - before);
            }
        }
    }

    /// Reads from the socket until so many bytes are kept, or all there are.
    pub fn fill(&mut self, ruby: &Ruby, wanted: u64) -> Result<(), Failure> {
        if self.store.len() >= wanted || self.decoder.is_done() {
            return Ok(());
        }
        let paused = clockwork::pause();
        let filled = self.fill_from_socket(ruby, wanted);
        paused.resume();
        if let Err(failure) = &filled {
            self.refused = match failure {
                Failure::Late => Some(408),
                Failure::Refused(reject) => Some(reject.status()),
                _ => None,
            };
        }
        filled
    }

    fn fill_from_socket(&mut self, ruby: &Ruby, wanted: u64) -> Result<(), Failure> {
        let socket = self.socket.clone().ok_or(Failure::Gone)?;
        if std::mem::take(&mut self.expects_continue) {
            (&*socket).write_all(CONTINUE).map_err(|_| Failure::Gone)?;
        }
        let mut raw = [0; CHUNK];
        let mut decoded = Vec::new();
        let mut deadline = clock::monotonic() + SILENCE;
        while self.store.len() < wanted && !self.decoder.is_done() {
            // Bytes beyond the end of this body are not this body's to read.
            let most = self.decoder.remaining().map_or(CHUNK, |left| usize::try_from(left).unwrap_or(CHUNK).min(CHUNK));
            match (&*socket).read(&mut raw[..most]) {
                Ok(0) => return Err(Failure::Gone),
                Ok(read) => {
                    decoded.clear();
                    self.decoder.decode(&raw[..read], &mut decoded).map_err(Failure::Refused)?;
                    self.store.append(&decoded).map_err(Failure::Storage)?;
                    deadline = clock::monotonic() + SILENCE;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !wait_for(ruby, &*socket, Direction::Read, deadline).map_err(Failure::Interrupted)? {
                        return Err(Failure::Late);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Gone),
            }
        }
        Ok(())
    }
}
