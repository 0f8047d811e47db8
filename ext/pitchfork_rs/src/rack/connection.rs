//! A connection: its socket, and what has come on it.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use magnus::{Error, Ruby};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pitchfork_core::children::Millis;
use pitchfork_core::http::{BodyDecoder, Framing, Head, Limits, Progress, Reject};
use pitchfork_core::reactor::{Content, Parcel, StoredBody};
use pitchfork_core::sys::{clock, tcp};
use socket2::Socket;

use super::buffer::Intake;
use super::settings::Settings;
use crate::process::clockwork;
use crate::vm::gvl;

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

/// Has the kernel send what it keeps back in the hope of more, if it does that with this socket.
pub fn push(socket: &Socket) {
    if socket.tcp_cork().unwrap_or(false) {
        let _ = socket.set_tcp_cork(false).and_then(|()| socket.set_tcp_cork(true));
    }
}

/// What has come of a request.
#[derive(Debug)]
pub enum Arrival {
    /// A whole head is in the buffer.
    Request,
    /// Nothing yet, or not all of a head.
    Waiting,
    /// The client left without a word, as probes and browsers do.
    Nothing,
    /// The client left in the middle of a head.
    Cut,
    /// The head is not one this server serves.
    Refused(Reject),
    /// The head did not arrive in time.
    Late,
}

/// What has come of the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyArrival {
    /// All of it, or something that is none.
    Whole,
    /// Not all of it.
    Waiting,
    /// Not all of it, and there is more than a worker reads before it calls the application.
    Large,
    /// Not all of it, and nothing more will.
    Cut,
}

/// How much of a body a worker reads before it calls the application, in bytes.
const MOST_BODY: usize = 64 * 1024;

/// Whether the bytes behind a head hold its whole body. What is malformed is nothing to wait for.
fn has_whole_body(head: &Head, bytes: &[u8], limits: &Limits) -> bool {
    let behind = bytes.get(head.len()..).unwrap_or_default();
    match head.framing() {
        Framing::None => true,
        Framing::Length(length) => behind.len() as u64 >= length,
        Framing::Chunked => {
            let mut decoder = BodyDecoder::new(Framing::Chunked, limits);
            decoder.decode(behind, &mut Vec::new()).is_err() || decoder.is_done()
        }
    }
}

/// One accepted connection.
#[derive(Debug)]
pub struct Connection {
    /// Shared with the body reader and the response writer of the request in hand.
    pub socket: Arc<Socket>,
    /// The peer's address; `None` for a Unix socket.
    pub peer: Option<IpAddr>,
    /// How many requests were answered on it.
    pub served: u32,
    /// When its present wait began: the first one after it was accepted, or for the next request, for the rest of a head,
    /// or for a body. 0 before the first one.
    pub since: Millis,
    /// What has come and was not consumed, if there is anything.
    pub intake: Option<Box<Intake>>,
    /// The body of the request at the beginning of that, if the reactor has read it.
    pub body: Option<StoredBody>,
    /// Whether the head of a request is there, and its body waited for.
    pub awaits_body: bool,
    /// Until when the worker that holds it waits for it; 0 before it is held.
    pub held_until: Millis,
    /// Its mark among those that are held.
    pub mark: Option<u64>,
    /// Whether its socket keeps back what does not fill a segment (`TCP_CORK`).
    pub is_corked: bool,
}

impl Connection {
    /// Takes over an accepted, non-blocking descriptor.
    pub fn new(descriptor: OwnedFd, peer: Option<IpAddr>) -> Self {
        let socket = Arc::new(descriptor.into());
        Self {
            socket,
            peer,
            served: 0,
            since: 0,
            intake: None,
            body: None,
            awaits_body: false,
            held_until: 0,
            mark: None,
            is_corked: false,
        }
    }

    /// Takes over what the reactor has sent.
    pub fn unpack(parcel: Parcel) -> Self {
        let Parcel { socket, peer, served, since, bytes, content } = parcel;
        let mut connection = Self { served, since, ..Self::new(socket, peer) };
        if !bytes.is_empty() {
            let mut intake = Box::<Intake>::default();
            intake.buffer.append(&bytes);
            connection.intake = Some(intake);
        }
        if let Content::Request { body } = content {
            connection.body = body;
        }
        connection
    }

    /// Whether it has been answered, and nothing has come since.
    pub fn is_idle(&self) -> bool {
        self.served > 0 && self.intake.is_none()
    }

    /// When it has waited long enough.
    pub fn deadline(&self, settings: &Settings) -> Millis {
        let Settings { keepalive_timeout, header_timeout, body_timeout, .. } = *settings;
        let patience = match (self.is_idle(), self.awaits_body) {
            (true, _) => keepalive_timeout,
            (false, true) => body_timeout,
            (false, false) => header_timeout,
        };
        self.since + patience
    }

    /// Reads what has come, until a whole request head is there, or until it is certain that none will be.
    pub fn read_head(&self, intake: &mut Intake, limits: &Limits) -> Arrival {
        let Intake { buffer, head } = intake;
        let mut may_have_more = true;
        loop {
            // What came behind the last request may be the next one.
            if !buffer.is_empty() {
                match head.parse(buffer.filled(), limits) {
                    Ok(Progress::Complete) => return Arrival::Request,
                    Ok(Progress::Partial) => {}
                    Err(reject) => return Arrival::Refused(reject),
                }
            }
            if !may_have_more {
                return Arrival::Waiting;
            }
            match buffer.read_from(&self.socket) {
                Ok((0, _)) if buffer.is_empty() => return Arrival::Nothing,
                Ok((0, _)) => return Arrival::Cut,
                Ok((_, is_full)) => may_have_more = is_full,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Arrival::Waiting,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Arrival::Nothing,
            }
        }
    }

    /// As [`Self::read_head`], but waits for what has not come.
    pub fn await_head(
        &self,
        ruby: &Ruby,
        intake: &mut Intake,
        limits: &Limits,
        deadline: Millis,
    ) -> Result<Arrival, Error> {
        loop {
            match self.read_head(intake, limits) {
                Arrival::Waiting if wait_for(ruby, &*self.socket, Direction::Read, deadline)? => {}
                Arrival::Waiting if intake.buffer.is_empty() => return Ok(Arrival::Nothing),
                Arrival::Waiting => return Ok(Arrival::Late),
                other => return Ok(other),
            }
        }
    }

    /// Reads what has come of the body of a request whose head is there, without waiting and without consuming it.
    pub fn read_body(&self, intake: &mut Intake, limits: &Limits) -> BodyArrival {
        let Intake { buffer, head } = intake;
        let most = head.len() + MOST_BODY;
        loop {
            if has_whole_body(head, buffer.filled(), limits) {
                return BodyArrival::Whole;
            }
            if buffer.filled().len() >= most
                || matches!(head.framing(), Framing::Length(length) if length > MOST_BODY as u64)
            {
                return BodyArrival::Large;
            }
            match buffer.read_from(&self.socket) {
                Ok((0, _)) => return BodyArrival::Cut,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return BodyArrival::Waiting,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return BodyArrival::Cut,
            }
        }
    }

    /// Has the kernel send what it keeps back in the hope of more.
    pub fn push(&self) {
        if self.is_corked {
            push(&self.socket);
        }
    }

    /// Ends a connection on which nothing is under way. Others may have inherited the socket, so closing does not do.
    pub fn part(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
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
        self.part();
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
