//! Writing to a client that may be slow, or gone.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use magnus::{Error, RString, Ruby};
use nix::errno::Errno;
use nix::sys::sendfile::sendfile;
use pitchfork_core::children::Millis;
use pitchfork_core::reactor::{FilePart, Rest};
use pitchfork_core::sys::{clock, process};
use socket2::Socket;

use super::call;
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

/// Where bytes go.
enum Target<'t> {
    Socket(&'t Socket),
    Memory(&'t mut Vec<u8>),
}

impl Target<'_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.write(bytes),
            Self::Memory(memory) => memory.write(bytes),
        }
    }
}

/// One response on its way out.
#[derive(Debug)]
pub struct Sender {
    socket: Arc<Socket>,
    pending: Vec<u8>,
    begun: bool,
    timeout: Millis,
    /// How many bytes of a response may be left to others, who wait for the client then.
    leave_up_to: usize,
    /// What is left to them. Nothing is sent any more once there is something here.
    rest: Option<Rest>,
    /// How many forks had happened when the response began, if a copy of this process must not send any of it.
    forks: Option<u32>,
}

impl Sender {
    /// Nothing is sent yet but what stands in `pending`. A client that takes nothing for `timeout` is given up.
    pub fn new(socket: Arc<Socket>, pending: Vec<u8>, timeout: Millis) -> Self {
        Self { socket, pending, begun: false, timeout, leave_up_to: 0, rest: None, forks: None }
    }

    /// Does not wait for a client that takes nothing at the moment, if no more than so many bytes are left then, or a
    /// part of a file. 0 for one whose response is to arrive as it is made.
    pub fn leave_up_to(&mut self, bytes: usize) {
        self.leave_up_to = bytes;
    }

    /// Has copies of this process exit instead of sending: the application may fork while it makes its body, and go on in
    /// both. `forks` are those up to now.
    pub fn keep_to_this_process(&mut self, forks: u32) {
        self.forks = Some(forks);
    }

    /// What the client has not taken: whoever gets it has to send it.
    pub fn take_rest(&mut self) -> Option<Rest> {
        self.rest.take()
    }

    /// Sends what was left, waiting for the client.
    pub fn send_rest(&mut self, ruby: &Ruby, rest: &Rest) -> Result<(), Failure> {
        self.leave_up_to = 0;
        self.send_bytes(ruby, &rest.before)?;
        if let Some(FilePart { file, offset, length }) = &rest.file {
            self.send_part(ruby, file.as_fd(), *offset, *length)?;
        }
        self.send_bytes(ruby, &rest.after)
    }

    /// The connection.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Moves the response into other hands, leaving an empty shell that sends nothing.
    pub fn take(&mut self) -> Self {
        let shell = Self { begun: self.begun, ..Self::new(Arc::clone(&self.socket), Vec::new(), self.timeout) };
        std::mem::replace(self, shell)
    }

    /// Gives the memory back.
    pub fn into_memory(self) -> Vec<u8> {
        self.pending
    }

    /// Whether the client may have seen some of it already, so that no other response can take its place.
    pub fn has_begun(&self) -> bool {
        self.begun || self.rest.is_some()
    }

    /// What is to be sent with the next [`Sender::flush`].
    pub fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Sends all that is pending.
    pub fn flush(&mut self, ruby: &Ruby) -> Result<(), Failure> {
        let pending = std::mem::take(&mut self.pending);
        let sent = self.send_bytes(ruby, &pending);
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
        self.send(ruby, len, |from, mut target| {
            // The string may have been cut by another thread while this one waited.
            string::with_bytes(string, |bytes| target.take(bytes.get(from..len).unwrap_or_default()))
        })
    }

    fn send_bytes(&mut self, ruby: &Ruby, bytes: &[u8]) -> Result<(), Failure> {
        self.send(ruby, bytes.len(), |from, mut target| target.take(&bytes[from..]))
    }

    fn send(
        &mut self,
        ruby: &Ruby,
        len: usize,
        send_from: impl Fn(usize, Target<'_>) -> io::Result<usize>,
    ) -> Result<(), Failure> {
        if self.forks.is_some_and(|forks| forks != process::forks()) {
            return Err(Failure::Interrupted(call::exit(ruby)));
        }
        let mut sent = 0;
        self.make_room_in_rest(ruby, len)?;
        while sent < len {
            if let Some(rest) = &mut self.rest {
                let behind = if rest.file.is_some() { &mut rest.after } else { &mut rest.before };
                // A string may have been cut by another thread: then there is less than was promised.
                let left = send_from(sent, Target::Memory(behind)).is_ok_and(|copied| copied == len - sent);
                return if left { Ok(()) } else { Err(Failure::Gone) };
            }
            match send_from(sent, Target::Socket(&self.socket)) {
                Ok(0) => return Err(Failure::Gone),
                Ok(written) => {
                    self.begun = true;
                    sent += written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && len - sent <= self.leave_up_to => {
                    self.rest = Some(Rest::default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(ruby)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Gone),
            }
        }
        Ok(())
    }

    /// Sees to it that so many bytes more may be left to others, or that nothing is.
    fn make_room_in_rest(&mut self, ruby: &Ruby, more: usize) -> Result<(), Failure> {
        let left = self.rest.as_ref().map_or(0, |rest| rest.before.len() + rest.after.len());
        if left + more <= self.leave_up_to {
            return Ok(());
        }
        match self.rest.take() {
            Some(rest) => {
                let leave_up_to = self.leave_up_to;
                let sent = self.send_rest(ruby, &rest);
                self.leave_up_to = leave_up_to;
                sent
            }
            None => Ok(()),
        }
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
        self.send_part(ruby, file.as_fd(), 0, length)
    }

    fn send_part(&mut self, ruby: &Ruby, file: BorrowedFd<'_>, start: u64, length: u64) -> Result<u64, Failure> {
        let end = start.saturating_add(length);
        let mut offset = start.cast_signed();
        while offset.cast_unsigned() < end {
            if self.leave_part(ruby, file, offset.cast_unsigned(), end)? {
                return Ok(length);
            }
            // Without the GVL: the file may have to come from a slow disk.
            let sent = gvl::wait(ruby, || {
                let most = usize::try_from(end - offset.cast_unsigned()).unwrap_or(usize::MAX).min(FILE_CHUNK);
                sendfile(&*self.socket, file, Some(&mut offset), most)
            });
            match sent.map_err(Failure::Interrupted)? {
                Some(Ok(0)) => break, // the file has become shorter
                Some(Ok(_)) => self.begun = true,
                Some(Err(Errno::EAGAIN)) if self.leave_up_to > 0 => self.rest = Some(Rest::default()),
                Some(Err(Errno::EAGAIN)) => self.wait(ruby)?,
                None | Some(Err(Errno::EINTR)) => {}
                Some(Err(_)) => return Err(Failure::Gone),
            }
        }
        Ok(offset.cast_unsigned() - start)
    }

    /// Leaves the rest of a file to others, if something is left to them already.
    fn leave_part(&mut self, ruby: &Ruby, file: BorrowedFd<'_>, offset: u64, end: u64) -> Result<bool, Failure> {
        let Some(mut rest) = self.rest.take() else { return Ok(false) };
        let Ok(file) = file.try_clone_to_owned() else {
            // No descriptor is left for it, so this process has to send all of it.
            return self.send_rest(ruby, &rest).map(|()| false);
        };
        rest.file = Some(FilePart { file, offset, length: end - offset });
        self.rest = Some(rest);
        Ok(true)
    }
}
