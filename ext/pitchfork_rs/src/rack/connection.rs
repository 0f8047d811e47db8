//! A connection: its socket, the bytes read from it, and how far they have been understood.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use magnus::{Error, Ruby};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pitchfork_core::children::Millis;
use pitchfork_core::http::{Head, Limits, Progress, Reject};
use pitchfork_core::sys::{clock, tcp};
use socket2::Socket;

use crate::process::clockwork;
use crate::vm::gvl;

/// How much is asked of the kernel at once.
const READ_SIZE: usize = 16 * 1024;

/// Which way a socket has to become ready.
#[derive(Clone, Copy, Debug)]
pub enum Direction {
    /// There is something to read, or the end.
    Read,
    /// There is room to write, or an error.
    Write,
}

/// Waits for a socket without the GVL. `false` when `deadline` passes first.
pub fn wait_for(ruby: &Ruby, socket: &impl AsFd, direction: Direction, deadline: Millis) -> Result<bool, Error> {
    let events = match direction {
        Direction::Read => PollFlags::POLLIN,
        Direction::Write => PollFlags::POLLOUT,
    };
    loop {
        let left = deadline.saturating_sub(clock::monotonic());
        if left == 0 {
            return Ok(false);
        }
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match gvl::wait(ruby, || poll(&mut [PollFd::new(socket.as_fd(), events)], timeout))? {
            Some(Ok(ready)) if ready > 0 => return Ok(true),
            Some(Err(errno)) if errno != Errno::EINTR => return Ok(true), // the next call on the socket says why
            _ => {}
        }
    }
}

/// Bytes read from a socket. The memory is kept from one connection to the next, and cleared by nobody.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    filled: usize,
}

impl Buffer {
    /// What was read and not yet consumed.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Forgets everything, and memory beyond what an ordinary request needs.
    pub fn clear(&mut self) {
        self.filled = 0;
        if self.bytes.len() > 4 * READ_SIZE {
            self.bytes = Vec::new();
        }
    }

    fn read_from(&mut self, mut socket: &Socket) -> io::Result<usize> {
        if self.bytes.len() < self.filled + READ_SIZE / 2 {
            self.bytes.resize((self.bytes.len() * 2).max(READ_SIZE), 0);
        }
        let read = socket.read(&mut self.bytes[self.filled..])?;
        self.filled += read;
        Ok(read)
    }
}

/// What came of waiting for a request.
#[derive(Debug)]
pub enum Arrival {
    /// A whole head is in the buffer.
    Request,
    /// The client left without a word, as probes and browsers do.
    Nothing,
    /// The client left in the middle of a head.
    Cut,
    /// The head is not one this server serves.
    Refused(Reject),
    /// The head did not arrive in time.
    Late,
}

/// One accepted connection.
#[derive(Debug)]
pub struct Connection {
    /// Shared with the body reader and the response writer of the request in hand.
    pub socket: Arc<Socket>,
    /// The peer's address; `None` for a Unix socket.
    pub peer: Option<IpAddr>,
}

impl Connection {
    /// Takes over an accepted, non-blocking descriptor.
    pub fn new(descriptor: OwnedFd, peer: Option<IpAddr>) -> Self {
        Self { socket: Arc::new(descriptor.into()), peer }
    }

    /// Reads until a whole request head is in `buffer`, or until it is certain that none will be.
    pub fn read_head(
        &self,
        ruby: &Ruby,
        buffer: &mut Buffer,
        head: &mut Head,
        limits: &Limits,
        deadline: Millis,
    ) -> Result<Arrival, Error> {
        buffer.clear();
        head.clear();
        loop {
            match buffer.read_from(&self.socket) {
                Ok(0) if buffer.filled().is_empty() => return Ok(Arrival::Nothing),
                Ok(0) => return Ok(Arrival::Cut),
                Ok(_) => match head.parse(buffer.filled(), limits) {
                    Ok(Progress::Complete) => return Ok(Arrival::Request),
                    Ok(Progress::Partial) => {}
                    Err(reject) => return Ok(Arrival::Refused(reject)),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !wait_for(ruby, &*self.socket, Direction::Read, deadline)? {
                        return Ok(if buffer.filled().is_empty() { Arrival::Nothing } else { Arrival::Late });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(Arrival::Nothing),
            }
        }
    }

    /// Whether the client has left by now. One that has only ended its own side counts as gone on TCP, where the kernel
    /// does not tell the two apart, and not on a Unix socket.
    pub fn is_abandoned(&self) -> bool {
        if self.peer.is_some() {
            return tcp::peer_has_left(&*self.socket).unwrap_or(false);
        }
        let mut poll_fd = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        poll(&mut poll_fd, PollTimeout::ZERO).is_ok()
            && poll_fd[0].revents().is_some_and(|events| events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR))
    }

    /// Says goodbye: the client sees the end of the response even if somebody else inherited the socket.
    ///
    /// Closing with unread bytes in the socket would reset the connection, and the client might lose the response
    /// with it, so a little of what is still coming is read and thrown away first.
    pub fn finish(&self, ruby: &Ruby, unread: bool) -> Result<(), Error> {
        const LINGER: Millis = 500;
        const MOST: usize = 256 * 1024;
        let _ = self.socket.shutdown(Shutdown::Write);
        if !unread {
            return Ok(());
        }
        let deadline = clock::monotonic() + LINGER;
        let mut scratch = [0; 4096];
        let mut thrown_away = 0;
        while thrown_away < MOST {
            match (&*self.socket).read(&mut scratch) {
                Ok(0) => break,
                Ok(read) => thrown_away += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let paused = clockwork::pause();
                    let more = wait_for(ruby, &*self.socket, Direction::Read, deadline);
                    paused.resume();
                    if !more? {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Writes what fits, for answers that nobody waits to see delivered.
    pub fn write_once(&self, bytes: &[u8]) {
        let _ = (&*self.socket).write(bytes);
    }
}
