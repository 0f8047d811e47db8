//! What is said to a connection, and what it says.

use std::net::IpAddr;

use crate::children::Millis;
use crate::http::date::DATE_LENGTH;
use crate::reactor::{Buffered, Settings};

/// What a decision depends on besides the connection.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'c> {
    /// Limits and patience.
    pub settings: &'c Settings,
    /// The time.
    pub now: Millis,
    /// The time as a response says it.
    pub date: &'c [u8; DATE_LENGTH],
    /// Whether nothing is waited for any more that has not begun.
    pub draining: bool,
}

/// What has happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<'e> {
    /// The connection is here.
    Arrived,
    /// The client has sent this.
    Received(&'e [u8]),
    /// The client sends no more.
    Ended,
    /// The connection is broken, or there is no more of a file that was to be sent.
    Broken,
    /// So many bytes of [`super::Connection::chunk`] were taken by the client.
    Written(u64),
    /// [`super::Connection::unstored`] is in its file.
    Stored,
    /// It is not, and will not be.
    NotStored,
    /// This side of the connection was ended.
    HalfClosed,
    /// The deadline may have passed.
    Due,
    /// From now on, nothing is waited for that has not begun.
    Drain,
    /// Its descriptor is needed, if it can be spared.
    Displaced,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read as soon as there is something to read: [`Event::Received`], [`Event::Ended`].
    Read,
    /// Write [`super::Connection::chunk`] as soon as there is room: [`Event::Written`].
    Write,
    /// Write [`super::Connection::unstored`] into its file: [`Event::Stored`], [`Event::NotStored`].
    Store,
    /// End this side of the connection: [`Event::HalfClosed`].
    HalfClose,
    /// Take [`super::Connection::into_request`] and send it to a worker.
    HandOver,
    /// Close the connection.
    Close,
}

/// How far a connection is, in rough terms, for those who count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing has come of the next request.
    Idle,
    /// Some of it has come.
    Reading,
    /// All of it has come.
    Ready,
    /// A response is written.
    Writing,
    /// It is about to be closed.
    Closing,
}

/// Where a connection comes from, and what it has behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The peer's address; `None` for a Unix socket.
    pub peer: Option<IpAddr>,
    /// How many requests were answered.
    pub served: u32,
    /// When its present wait began.
    pub since: Millis,
}

/// A whole request.
#[derive(Debug)]
pub struct Request {
    /// Whose it is.
    pub origin: Origin,
    /// The head, and what came behind the request.
    pub bytes: Vec<u8>,
    /// The body, if it was read.
    pub body: Option<Buffered>,
}
