//! The body of a request: read from the socket when somebody asks for it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use magnus::{Error, Ruby};
use pitchfork_core::children::Millis;
use pitchfork_core::http::response::CONTINUE;
use pitchfork_core::http::{BodyDecoder, Framing, Limits, Reject};
use pitchfork_core::reactor::StoredBody;
use pitchfork_core::sys::clock;
use socket2::Socket;

use super::connection::{Direction, push, wait_for};
use super::settings::Settings;
use super::store::Store;
use crate::process::clockwork;

const CHUNK: usize = 16 * 1024;
/// How much of a body that the application has left alone is read, so that the connection can go on.
const LEFT_ALONE: usize = 64 * 1024;

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The client has gone away.
    #[error("the client closed the connection in the middle of the request body")]
    Gone,
    /// The client has stopped sending, or sends too slowly.
    #[error("the client sent the request body too slowly")]
    Late,
    /// The request is over, and its body gone.
    #[error("the request is over")]
    Over,
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

/// What a body is read through.
struct Room {
    raw: [u8; CHUNK],
    decoded: Vec<u8>,
}

impl Default for Room {
    fn default() -> Self {
        Self { raw: [0; CHUNK], decoded: Vec::new() }
    }
}

/// One request body.
#[derive(Debug)]
pub struct Body {
    /// `None` once the request is over: an application may hold on to `rack.input`, but not to what is behind it.
    socket: Option<Arc<Socket>>,
    decoder: BodyDecoder,
    store: Store,
    position: u64,
    expects_continue: bool,
    /// Whether the connection's end is the body's, too.
    until_close: bool,
    /// When the first byte was waited for.
    began: Option<Millis>,
    refused: Option<u16>,
    /// What was read behind the end of the body.
    surplus: Vec<u8>,
    settings: Settings,
}

impl Body {
    /// A body of which `early` arrived together with the head, and the number of bytes that this was: behind them is
    /// the next request. Fails if it is malformed right there.
    pub fn new(
        socket: Arc<Socket>,
        mut decoder: BodyDecoder,
        early: &[u8],
        expects_continue: bool,
        settings: Settings,
    ) -> Result<(Self, usize), Failure> {
        let mut store = if settings.rewindable { Store::keeping(settings.body_memory) } else { Store::passing() };
        let mut bytes = Vec::new();
        let taken = decoder.decode(early, &mut bytes).map_err(Failure::Refused)?;
        store.append(&bytes).map_err(Failure::Storage)?;
        // A client that sends without waiting does not need to be told.
        let expects_continue = expects_continue && early.is_empty();
        let body = Self {
            socket: Some(socket),
            decoder,
            store,
            position: 0,
            expects_continue,
            until_close: false,
            began: None,
            refused: None,
            surplus: Vec::new(),
            settings,
        };
        Ok((body, taken))
    }

    /// A body that somebody else has read to its end.
    pub fn full(socket: Arc<Socket>, body: StoredBody, settings: Settings) -> Result<Self, Failure> {
        let decoder = BodyDecoder::new(Framing::None, &settings.limits);
        let (empty, _) = Self::new(socket, decoder, &[], false, settings)?;
        Ok(Self { store: Store::full(body), ..empty })
    }

    /// Whatever comes on a connection, to its end, for a streaming response that answers it. `leftover` came behind
    /// the request.
    pub fn raw(socket: Arc<Socket>, leftover: &[u8], settings: Settings) -> Result<Self, Failure> {
        let settings = Settings { rewindable: false, min_rate: 0, ..settings };
        let decoder = BodyDecoder::new(Framing::Length(u64::MAX), &Limits::default());
        let (body, _) = Self::new(socket, decoder, leftover, false, settings)?;
        Ok(Self { until_close: true, ..body })
    }

    /// Whether some of it is still to come, and the client knows that it may send it.
    pub fn is_unread(&self) -> bool {
        !self.decoder.is_done()
    }

    /// Whether all of it is there, once what has come and a little more was read without waiting.
    ///
    /// A client that still waits for `100 Continue` may send its body after the response, or may not; nobody can tell.
    pub fn has_come(&mut self) -> bool {
        if !self.is_unread() {
            return true;
        }
        let Some(socket) = self.socket.clone().filter(|_| !self.expects_continue) else { return false };
        let mut room = Room::default();
        let mut read = 0;
        while self.is_unread() && read < LEFT_ALONE {
            match self.read_once(&socket, &mut room) {
                Ok(Some(more @ 1..)) => read += more,
                _ => break,
            }
        }
        !self.is_unread()
    }

    /// Gives out what was read behind the end of the body.
    pub fn take_surplus(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.surplus)
    }

    /// The status to answer with if reading it has failed because of the client.
    pub fn refused(&self) -> Option<u16> {
        self.refused
    }

    /// Lets go of the connection, and of what was kept.
    pub fn end(&mut self) {
        self.socket = None;
        self.store = Store::passing();
    }

    /// Ends a body that another thread may still be reading: that one is told that nothing more will come, on its socket.
    /// There is none where all has come, and the connection may be somebody else's already.
    pub fn end_shared(ruby: &Ruby, body: &std::sync::Mutex<Self>, socket: Option<&Socket>) -> Result<(), Error> {
        if let Some(socket) = socket
            && matches!(body.try_lock(), Err(std::sync::TryLockError::WouldBlock))
        {
            let _ = socket.shutdown(std::net::Shutdown::Read);
        }
        crate::vm::gvl::lock(ruby, body)?.end();
        Ok(())
    }

    /// Back to the first byte.
    pub fn rewind(&mut self) {
        self.position = 0;
    }

    /// The whole length in bytes, read to the end if only the end tells.
    pub fn size(&mut self, ruby: &Ruby) -> Result<u64, Failure> {
        self.check_alive()?;
        if let Some(remaining) = self.decoder.remaining() {
            return Ok(self.store.end() + remaining);
        }
        self.fill(ruby, u64::MAX)?;
        Ok(self.store.end())
    }

    /// Appends up to `most` bytes to `out`; fewer only at the end.
    pub fn read(&mut self, ruby: &Ruby, most: u64, out: &mut Vec<u8>) -> Result<usize, Failure> {
        self.fill(ruby, self.position.saturating_add(most))?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let read = self.store.read_at(self.position, most, out).map_err(Failure::Storage)?;
        self.position += read as u64;
        self.store.forget_before(self.position);
        Ok(read)
    }

    /// Appends the rest of the line, its end included, to `out`.
    pub fn read_line(&mut self, ruby: &Ruby, out: &mut Vec<u8>) -> Result<usize, Failure> {
        const STEP: u64 = 4096;
        let before = out.len();
        loop {
            let seen = out.len();
            let position = self.position;
            self.fill(ruby, position + 1)?;
            let available = (self.store.end() - position).min(STEP);
            let most = usize::try_from(available).unwrap_or(usize::MAX);
            self.store.read_at(position, most, out).map_err(Failure::Storage)?;
            let end = out[seen..].iter().position(|&byte| byte == b'\n').map(|at| seen + at + 1);
            out.truncate(end.unwrap_or(out.len()));
            self.position += (out.len() - seen) as u64;
            self.store.forget_before(self.position);
            if end.is_some() || out.len() == seen {
                return Ok(out.len() - before);
            }
        }
    }

    /// Reads from the socket until so many bytes have come, or all there are.
    pub fn fill(&mut self, ruby: &Ruby, wanted: u64) -> Result<(), Failure> {
        self.check_alive()?;
        if self.store.end() >= wanted || self.decoder.is_done() {
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

    fn check_alive(&self) -> Result<(), Failure> {
        if self.socket.is_some() { Ok(()) } else { Err(Failure::Over) }
    }

    fn fill_from_socket(&mut self, ruby: &Ruby, wanted: u64) -> Result<(), Failure> {
        let socket = self.socket.clone().ok_or(Failure::Over)?;
        if std::mem::take(&mut self.expects_continue) {
            (&*socket).write_all(CONTINUE).map_err(|_| Failure::Gone)?;
            push(&socket);
        }
        let mut room = Room::default();
        let mut heard = clock::monotonic();
        let began = *self.began.get_or_insert(heard);
        while self.store.end() < wanted && !self.decoder.is_done() {
            match self.read_once(&socket, &mut room)? {
                Some(0) if self.until_close => return Ok(()),
                Some(0) => return Err(Failure::Gone),
                Some(_) => {
                    heard = clock::monotonic();
                    clockwork::await_client();
                }
                None => {
                    let Settings { body_timeout, min_rate, .. } = self.settings;
                    let deadline = self.decoder.deadline(began, heard, body_timeout, min_rate);
                    if !wait_for(ruby, &*socket, Direction::Read, deadline).map_err(Failure::Interrupted)? {
                        return Err(Failure::Late);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads once: so many bytes, 0 at the end of the connection, or `None` if nothing has come.
    fn read_once(&mut self, mut socket: &Socket, room: &mut Room) -> Result<Option<usize>, Failure> {
        // Of a body with a length no more is read than is missing; what comes behind chunks is given back.
        let most = self.decoder.remaining().map_or(CHUNK, |left| usize::try_from(left).unwrap_or(CHUNK).min(CHUNK));
        let read = loop {
            match socket.read(&mut room.raw[..most]) {
                Ok(read) => break read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Failure::Gone),
            }
        };
        room.decoded.clear();
        let taken = self.decoder.decode(&room.raw[..read], &mut room.decoded).map_err(Failure::Refused)?;
        self.store.append(&room.decoded).map_err(Failure::Storage)?;
        self.surplus.extend_from_slice(&room.raw[taken..read]);
        Ok(Some(read))
    }
}
