//! What is done with one connection: a decision after each event, without I/O, without a clock, without descriptors.
//!
//! [`Connection::step`] takes note of what has happened and says what is to be done now. That follows from the state
//! alone, so an event that no longer fits does no harm: the answer is what was to be done anyway.

mod terms;

use std::net::IpAddr;

pub use terms::{Action, Circumstances, Event, Origin, Phase, Request};

use super::incoming::{Buffered, Incoming};
use super::outgoing::{Chunk, Outgoing};
use super::parcel::Then;
use super::refusal::Refusal;
use super::settings::Settings;
use crate::children::Millis;
use crate::http::{Framing, Head, Progress};

/// For how long, and for how many bytes, the end of a connection is waited for once this side has ended.
///
/// Closing with unread bytes in the socket would reset the connection, and the client might lose the response with it.
pub const LINGER: Millis = 500;
const MOST_IGNORED: usize = 256 * 1024;

/// A connection, as far as decisions need it.
#[derive(Debug)]
pub struct Connection {
    origin: Origin,
    /// What was read and not consumed. While a body is read that is the head alone.
    bytes: Vec<u8>,
    state: State,
}

/// Small, because most connections are idle; what only others need is elsewhere.
#[derive(Debug)]
enum State {
    Idle,
    Head(Box<Head>),
    Body(Box<Incoming>),
    Ready(Option<Buffered>),
    Writing(Box<Outgoing>),
    Lingering { until: Millis, ignored: usize, half_closed: bool },
    Closed,
}

impl Connection {
    /// One that waits for a request, of which `bytes` have come already.
    #[must_use]
    pub fn waiting(origin: Origin, bytes: Vec<u8>) -> Self {
        Self { origin, bytes, state: State::Idle }
    }

    /// One whose client still has to take a response, and has sent `bytes` meanwhile.
    #[must_use]
    pub fn writing(origin: Origin, bytes: Vec<u8>, response: Outgoing) -> Self {
        Self { origin, bytes, state: State::Writing(Box::new(response)) }
    }

    /// One that is to be ended.
    #[must_use]
    pub fn ending(origin: Origin) -> Self {
        let mut connection = Self::waiting(origin, Vec::new());
        connection.end(origin.since);
        connection
    }

    /// Takes note of an event, and says what is to be done.
    pub fn step(&mut self, event: Event<'_>, at: &Circumstances<'_>) -> Action {
        match event {
            Event::Arrived => self.arrive(at),
            Event::Received(bytes) => self.receive(bytes, at),
            Event::Ended if self.is_reading() => self.close(),
            Event::Broken => self.close(),
            Event::Written(bytes) => self.write(bytes, at),
            Event::Stored | Event::NotStored => self.store(matches!(event, Event::Stored), at),
            Event::HalfClosed => {
                if let State::Lingering { half_closed, .. } = &mut self.state {
                    *half_closed = true;
                }
            }
            Event::Due if self.deadline(at.settings).is_some_and(|deadline| deadline <= at.now) => self.expire(at),
            Event::Drain if self.phase() == Phase::Idle => self.end(at.now),
            Event::Displaced if self.phase() == Phase::Idle => self.close(),
            Event::Ended | Event::Due | Event::Drain | Event::Displaced => {}
        }
        self.action()
    }

    /// What is to be done.
    #[must_use]
    pub fn action(&self) -> Action {
        match &self.state {
            State::Body(body) if !body.unstored().is_empty() => Action::Store,
            State::Lingering { half_closed: false, .. } => Action::HalfClose,
            State::Idle | State::Head(_) | State::Body(_) | State::Lingering { .. } => Action::Read,
            State::Writing(_) => Action::Write,
            State::Ready(_) => Action::HandOver,
            State::Closed => Action::Close,
        }
    }

    /// When this must have come further.
    #[must_use]
    pub fn deadline(&self, settings: &Settings) -> Option<Millis> {
        let Origin { served, since, .. } = self.origin;
        match &self.state {
            State::Idle if served > 0 => Some(since.saturating_add(settings.keepalive_timeout)),
            State::Idle | State::Head(_) => Some(since.saturating_add(settings.header_timeout)),
            State::Body(body) => Some(body.deadline(settings)),
            State::Writing(response) => Some(response.heard.saturating_add(settings.write_timeout)),
            State::Lingering { until, .. } => Some(*until),
            State::Ready(_) | State::Closed => None,
        }
    }

    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Idle => Phase::Idle,
            State::Head(_) | State::Body(_) => Phase::Reading,
            State::Ready(_) => Phase::Ready,
            State::Writing(_) => Phase::Writing,
            State::Lingering { .. } | State::Closed => Phase::Closing,
        }
    }

    /// Why its request is being answered with an error here, if it is.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match &self.state {
            State::Writing(response) => response.refusal,
            _ => None,
        }
    }

    /// The peer's address; `None` for a Unix socket.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        self.origin.peer
    }

    /// When its present wait began.
    #[must_use]
    pub fn since(&self) -> Millis {
        self.origin.since
    }

    /// Whether there is something in its file that is still wanted, or about to be.
    #[must_use]
    pub fn has_file(&self) -> bool {
        match &self.state {
            State::Body(body) => body.is_spilled(),
            State::Ready(body) => matches!(body, Some(Buffered::File(_))),
            State::Writing(response) => response.has_file(),
            State::Idle | State::Head(_) | State::Lingering { .. } | State::Closed => false,
        }
    }

    /// How many bytes of memory it holds besides itself.
    #[must_use]
    pub fn memory(&self) -> usize {
        let more = match &self.state {
            State::Head(_) => size_of::<Head>(),
            State::Body(body) => size_of::<Incoming>() + body.memory(),
            State::Ready(Some(Buffered::Memory(body))) => body.capacity(),
            State::Writing(response) => size_of::<Outgoing>() + response.memory(),
            _ => 0,
        };
        self.bytes.capacity() + more
    }

    /// What is to be written next.
    #[must_use]
    pub fn chunk(&self) -> Option<Chunk<'_>> {
        match &self.state {
            State::Writing(response) => response.chunk(),
            _ => None,
        }
    }

    /// What is to be stored next: where in the file, and what.
    #[must_use]
    pub fn unstored(&self) -> (u64, &[u8]) {
        match &self.state {
            State::Body(body) => (body.stored(), body.unstored()),
            _ => (0, &[]),
        }
    }

    /// The request, if it is whole.
    #[must_use]
    pub fn into_request(self) -> Option<Request> {
        match self.state {
            State::Ready(body) => Some(Request { origin: self.origin, bytes: self.bytes, body }),
            _ => None,
        }
    }

    fn is_reading(&self) -> bool {
        matches!(self.state, State::Idle | State::Head(_) | State::Body(_) | State::Lingering { .. })
    }

    fn arrive(&mut self, at: &Circumstances<'_>) {
        match &mut self.state {
            State::Idle => self.go_on(at),
            State::Writing(_) => self.write(0, at),
            State::Lingering { until, .. } => *until = at.now + LINGER,
            _ => {}
        }
    }

    fn receive(&mut self, input: &[u8], at: &Circumstances<'_>) {
        match &mut self.state {
            State::Idle if !input.is_empty() => {
                self.origin.since = at.now;
                self.bytes.extend_from_slice(input);
                self.go_on(at);
            }
            State::Head(_) => {
                self.bytes.extend_from_slice(input);
                self.parse(at);
            }
            State::Body(_) => self.feed(input, at),
            State::Lingering { ignored, .. } => {
                *ignored += input.len();
                if *ignored >= MOST_IGNORED {
                    self.close();
                }
            }
            _ => {}
        }
    }

    /// At the beginning of a request, or before it.
    fn go_on(&mut self, at: &Circumstances<'_>) {
        if !self.bytes.is_empty() {
            self.state = State::Head(Box::default());
            self.parse(at);
        } else if at.draining {
            self.end(at.now);
        } else {
            self.bytes = Vec::new();
            self.state = State::Idle;
        }
    }

    fn parse(&mut self, at: &Circumstances<'_>) {
        let State::Head(head) = &mut self.state else { return };
        match head.parse(&self.bytes, &at.settings.limits) {
            Ok(Progress::Partial) => {}
            Ok(Progress::Complete) => {
                let (length, framing, waits) = (head.len(), head.framing(), head.expect_continue());
                self.begin_body(length, framing, waits, at);
            }
            Err(reject) => self.refuse(reject.into(), at),
        }
    }

    /// `waits`: the client may want to be told that it shall send its body, which is the application's to decide.
    fn begin_body(&mut self, head: usize, framing: Framing, waits: bool, at: &Circumstances<'_>) {
        let has_begun = self.bytes.len() > head;
        let is_empty = matches!(framing, Framing::None | Framing::Length(0));
        if is_empty || !at.settings.rewindable || (waits && !has_begun) {
            self.state = State::Ready(None);
            return;
        }
        let early = self.bytes.split_off(head);
        self.state = State::Body(Box::new(Incoming::new(framing, at)));
        self.feed(&early, at);
    }

    fn feed(&mut self, input: &[u8], at: &Circumstances<'_>) {
        let State::Body(body) = &mut self.state else { return };
        match body.feed(input, at) {
            Ok(taken) => {
                self.bytes.extend_from_slice(input.get(taken..).unwrap_or_default());
                self.take_body();
            }
            Err(reject) => self.refuse(reject.into(), at),
        }
    }

    fn store(&mut self, done: bool, at: &Circumstances<'_>) {
        match &mut self.state {
            State::Body(body) if done => {
                body.note_stored();
                self.take_body();
            }
            State::Body(_) => self.refuse(Refusal::Unstored, at),
            _ => {}
        }
    }

    fn take_body(&mut self) {
        if let State::Body(body) = &mut self.state
            && let Some(buffered) = body.take_if_complete()
        {
            self.state = State::Ready(Some(buffered));
        }
    }

    fn write(&mut self, bytes: u64, at: &Circumstances<'_>) {
        let State::Writing(response) = &mut self.state else { return };
        response.advance(bytes, at.now);
        if response.chunk().is_some() {
            return;
        }
        match response.then {
            Then::Close => self.end(at.now),
            Then::KeepAlive => {
                self.origin.since = at.now;
                self.go_on(at);
            }
        }
    }

    fn expire(&mut self, at: &Circumstances<'_>) {
        match self.state {
            State::Head(_) => self.refuse(Refusal::LateHead, at),
            State::Body(_) => self.refuse(Refusal::LateBody, at),
            State::Idle => self.end(at.now),
            _ => self.close(),
        }
    }

    /// Answers a client whose request no application shall see.
    fn refuse(&mut self, refusal: Refusal, at: &Circumstances<'_>) {
        self.bytes = Vec::new();
        self.state = State::Writing(Box::new(Outgoing::refusing(refusal, at)));
    }

    /// Says goodbye: this side ends, and the other has a moment to do so too.
    fn end(&mut self, now: Millis) {
        self.bytes = Vec::new();
        self.state = State::Lingering { until: now.saturating_add(LINGER), ignored: 0, half_closed: false };
    }

    fn close(&mut self) {
        self.bytes = Vec::new();
        self.state = State::Closed;
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
