//! Writing to a client that may be slow, or gone.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use magnus::{Error, RString, Ruby};
use nix::errno::Errno;
use nix::sys::sendfile::sendfile;
use pitchfork_core::children::Millis;
use pitchfork_core::sys::clock;
use socket2::Socket;

use super::connection::{Direction, wait_for};
use crate::process::clockwork;
use crate::vm::{gvl, string};

/// Strings up to this size are copied behind the head, so that both leave in one system call; longer ones are sent
/// from where they are.
const COPY_UP_TO: usize = 32 * 1024;
/// How much of a file is sent before other Ruby threads, and signals, get a chance.
const FILE_CHUNK: usize = 1024 * 1024;

/// Why a response could not be written.
#[derive(Debug)]
pub enum Failure {
    /// The client has gone away, or takes nothing any more. That is nobody's fault here.
    Gone,
    /// Ruby interrupted the wait.
    Interrupted(Error),
}

/// One response on its way out.
#[derive(Debug)]
pub struct Sender {
    socket: Arc<Socket>,
    pending: Vec<u8>,
    begun: bool,
    timeout: Millis,
}

impl Sender {
    /// Nothing is sent yet but what stands in `pending`. A client that takes nothing for `timeout` is given up.
    pub fn new(socket: Arc<Socket>, pending: Vec<u8>, timeout: Millis) -> Self {
        Self { socket, pending, begun: false, timeout }
    }

    /// The connection.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Moves the response into other hands, leaving an empty shell that sends nothing.
    pub fn take(&mut self) -> Self {
        let shell =
            Self { socket: Arc::clone(&self.socket), pending: Vec::new(), begun: self.begun, timeout: self.timeout };
        std::mem::replace(self, shell)
    }

    /// Gives the memory back.
    pub fn into_memory(self) -> Vec<u8> {
        self.pending
    }

    /// Whether the client may have seen some of it already, so that no other response can take its place.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// What is to be sent with the next [`Sender::flush`].
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Sends all that is pending.
    pub fn flush(&mut self, ruby: &Ruby) -> Result<(), Failure> {
        let pending = std::mem::take(&mut self.pending);
        let sent = self.send(ruby, pending.len(), |mut socket, from| socket.write(&pending[from..]));
        self.pending = pending;
        self.pending.clear();
        sent
    }

    /// Sends up to `most` bytes of a string, behind what is pending.
    pub fn send_string(&mut self, ruby: &Ruby, string: RString, most: usize) -> Result<(), Failure> {
        let len = string.len().min(most);
        if len <= COPY_UP_TO {
            string::with_bytes(string, |bytes| self.pending.extend_from_slice(&bytes[..len]));
            return if self.pending.len() > COPY_UP_TO { self.flush(ruby) } else { Ok(()) };
        }
        self.flush(ruby)?;
        self.send(ruby, len, |mut socket, from| {
            // The string may have been cut by another thread while this one waited.
            string::with_bytes(string, |bytes| socket.write(bytes.get(from..len).unwrap_or_default()))
        })
    }

    fn send(
        &mut self,
        ruby: &Ruby,
        len: usize,
        mut write: impl FnMut(&Socket, usize) -> io::Result<usize>,
    ) -> Result<(), Failure> {
        let mut sent = 0;
        while sent < len {
            match write(&self.socket, sent) {
                Ok(0) => return Err(Failure::Gone),
                Ok(written) => {
                    self.begun = true;
                    sent += written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(ruby)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Gone),
            }
        }
        Ok(())
    }

    fn wait(&self, ruby: &Ruby) -> Result<(), Failure> {
        let paused = clockwork::pause();
        let ready = wait_for(ruby, &*self.socket, Direction::Write, clock::monotonic() + self.timeout);
        paused.resume();
        match ready {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Gone),
            Err(error) => Err(Failure::Interrupted(error)),
        }
    }

    /// Sends `length` bytes of a file from its start on, behind what is pending. Gives back how many there were.
    pub fn send_file(&mut self, ruby: &Ruby, file: &File, length: u64) -> Result<u64, Failure> {
        self.flush(ruby)?;
        let mut offset: i64 = 0;
        while offset.cast_unsigned() < length {
            // Without the GVL: the file may have to come from a slow disk.
            let sent = gvl::wait(ruby, || {
                let most = usize::try_from(length - offset.cast_unsigned()).unwrap_or(usize::MAX).min(FILE_CHUNK);
                sendfile(&*self.socket, file, Some(&mut offset), most)
            });
            match sent.map_err(Failure::Interrupted)? {
                Some(Ok(0)) => break, // the file has become shorter
                Some(Ok(_)) => self.begun = true,
                Some(Err(Errno::EAGAIN)) => self.wait(ruby)?,
                None | Some(Err(Errno::EINTR)) => {}
                Some(Err(_)) => return Err(Failure::Gone),
            }
        }
        Ok(offset.cast_unsigned())
    }
}
