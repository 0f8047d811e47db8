//! The reactor's dealings with single connections.

use std::fs::File;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::epoll::{EpollEvent, EpollFlags};
use nix::sys::sendfile::sendfile;
use nix::sys::socket::{MsgFlags, recv, send};
use socket2::Socket;

use super::machine::{Action, Connection, Event, Phase};
use super::outgoing::Chunk;
use super::pool::Key;
use super::run::Reactor;

/// How much of a file is sent at once.
const FILE_CHUNK: u64 = 1024 * 1024;
/// How often a connection is written to before others have their turn.
const WRITES: usize = 4;

/// What belongs to a connection outside the decisions.
#[derive(Debug)]
pub(super) struct Outside {
    pub(super) socket: Socket,
    /// Where its request's body goes, or its response comes from.
    pub(super) file: Option<File>,
    /// What it is watched for. It must not be watched any more before it is closed: others may have it open.
    watched: Option<EpollFlags>,
}

impl Outside {
    pub(super) fn new(socket: Socket, file: Option<File>) -> Self {
        Self { socket, file, watched: None }
    }

    pub(super) fn descriptors(&self) -> usize {
        1 + usize::from(self.file.is_some())
    }
}

impl Reactor<'_> {
    /// Does what its connection waits for.
    pub(super) fn attend(&mut self, key: Key) {
        match self.pool.get_mut(key).map(|(connection, _)| connection.action()) {
            Some(Action::Read) => self.read(key),
            Some(Action::Write) => self.write(key),
            _ => {}
        }
    }

    /// Reads what a client that counts as idle may have sent by now: its request has begun then, and is no reason to end.
    pub(super) fn hear_out(&mut self, key: Key) {
        let is_idle = self.pool.get_mut(key).is_some_and(|(connection, _)| connection.phase() == Phase::Idle);
        // Not where one makes room for the body of another that is just being read: that could go on for ever deeper.
        if is_idle && !self.scratch.is_empty() {
            self.read(key);
        }
    }

    /// Says what has happened to a connection, and does what is to be done, until there is something to wait for.
    pub(super) fn tell(&mut self, key: Key, event: Event<'_>) {
        let date = self.date_now;
        let at = self.circumstances(&date);
        let mut next = self.pool.step(key, event, &at);
        while let Some(action) = next {
            self.remark_refusal();
            self.forget_file(key);
            next = match action {
                Action::Read => return self.watch(key, EpollFlags::EPOLLIN),
                Action::Write => return self.watch(key, EpollFlags::EPOLLOUT),
                Action::Store => {
                    let event = if self.store(key) { Event::Stored } else { Event::NotStored };
                    self.pool.step(key, event, &at)
                }
                Action::HalfClose => {
                    if let Some((_, outside)) = self.pool.get_mut(key) {
                        let _ = outside.socket.shutdown(Shutdown::Write);
                    }
                    self.pool.step(key, Event::HalfClosed, &at)
                }
                Action::HandOver => return self.hand_over(key),
                Action::Close => return self.close(key),
            };
        }
    }

    /// Says who was refused and why, as workers do.
    fn remark_refusal(&mut self) {
        let Some((peer, refusal)) = self.pool.take_refused() else { return };
        let peer = peer.map_or_else(|| "a Unix socket".into(), |peer| peer.to_string());
        self.remark(&format!("answered {} to {peer}: {refusal}", refusal.status()));
    }

    /// Lets go of a file that has served, so that what comes next does not meet it.
    fn forget_file(&mut self, key: Key) {
        let Some((connection, outside)) = self.pool.get_mut(key) else { return };
        if outside.file.is_some() && !connection.has_file() {
            outside.file = None;
            self.release(1);
        }
    }

    /// Takes a connection out of the pool, and out of what is watched.
    pub(super) fn take(&mut self, key: Key) -> Option<(Connection, Outside)> {
        let (connection, mut outside) = self.pool.remove(key)?;
        if outside.watched.take().is_some() {
            let _ = self.epoll.delete(&outside.socket);
        }
        Some((connection, outside))
    }

    fn close(&mut self, key: Key) {
        if let Some((_, outside)) = self.take(key) {
            // The client sees the end even if somebody else has the connection open.
            let _ = outside.socket.shutdown(Shutdown::Both);
            self.release(outside.descriptors());
        }
    }

    fn watch(&mut self, key: Key, flags: EpollFlags) {
        let Some((_, outside)) = self.pool.get_mut(key) else { return };
        if outside.watched == Some(flags) {
            return;
        }
        let mut event = EpollEvent::new(flags, key.number());
        let watched = match outside.watched {
            None => self.epoll.add(&outside.socket, event),
            Some(_) => self.epoll.modify(&outside.socket, &mut event),
        };
        match watched {
            Ok(()) => outside.watched = Some(flags),
            Err(errno) => {
                self.complain(&format!("the reactor cannot watch a connection, and closes it: {errno}"));
                self.close(key);
            }
        }
    }

    fn read(&mut self, key: Key) {
        let Some((_, outside)) = self.pool.get_mut(key) else { return };
        let mut scratch = std::mem::take(&mut self.scratch);
        match recv(outside.socket.as_raw_fd(), &mut scratch, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => self.tell(key, Event::Ended),
            Ok(count) => self.tell(key, Event::Received(&scratch[..count])),
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => self.tell(key, Event::Broken),
        }
        self.scratch = scratch;
    }

    fn write(&mut self, key: Key) {
        for _ in 0..WRITES {
            let Some((connection, outside)) = self.pool.get_mut(key) else { return };
            let Some(chunk) = connection.chunk() else { return };
            let (wanted, written) = match chunk {
                Chunk::Bytes(bytes) => {
                    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                    (bytes.len() as u64, send(outside.socket.as_raw_fd(), bytes, flags))
                }
                Chunk::File { offset, length } => {
                    let most = length.min(FILE_CHUNK);
                    (most, send_file(outside, offset, most))
                }
            };
            match written {
                // The file has become shorter: what was promised cannot be sent.
                Ok(0) => return self.tell(key, Event::Broken),
                Ok(count) => {
                    self.tell(key, Event::Written(count as u64));
                    if (count as u64) < wanted {
                        return;
                    }
                }
                Err(Errno::EAGAIN | Errno::EINTR) => return,
                Err(_) => return self.tell(key, Event::Broken),
            }
        }
    }

    /// Puts what has come of a body into its file. `false` if that is impossible.
    fn store(&mut self, key: Key) -> bool {
        let is_new = self.pool.get_mut(key).is_some_and(|(_, outside)| outside.file.is_none());
        if is_new {
            // If there is none, the reserve may do.
            self.make_room(1);
        }
        let Some((connection, outside)) = self.pool.get_mut(key) else { return false };
        let (offset, bytes) = connection.unstored();
        let stored = match &outside.file {
            Some(file) => file.write_all_at(bytes, offset),
            None => tempfile::tempfile().and_then(|file| {
                self.held += 1;
                outside.file.insert(file).write_all_at(bytes, offset)
            }),
        };
        if let Err(error) = &stored {
            self.complain(&format!("the request body could not be buffered: {error}"));
        }
        stored.is_ok()
    }
}

fn send_file(outside: &Outside, offset: u64, most: u64) -> Result<usize, Errno> {
    let Some(file) = &outside.file else { return Ok(0) };
    let mut offset = i64::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
    sendfile(outside.socket.as_fd(), file, Some(&mut offset), usize::try_from(most).unwrap_or(usize::MAX))
}
