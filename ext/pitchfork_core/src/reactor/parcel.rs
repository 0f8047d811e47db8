//! One connection on its way from one process to another.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use crate::children::Millis;

/// A connection, and all that is known about it.
#[derive(Debug)]
pub struct Parcel {
    /// The connection.
    pub socket: OwnedFd,
    /// The peer's address; `None` for a Unix socket.
    pub peer: Option<IpAddr>,
    /// How many requests were answered on this connection so far; one whose answer is in here counts.
    pub served: u32,
    /// When its present wait began, on the monotonic clock: at its accept, after its last response, or with the first
    /// byte of `bytes`.
    pub since: Millis,
    /// What was read from it and not consumed: a head or a part of one, and what came behind it.
    pub bytes: Vec<u8>,
    /// What is to be done with it.
    pub content: Content,
}

impl Parcel {
    /// The file of its content, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&OwnedFd> {
        match &self.content {
            Content::Request { body: Some(StoredBody::File { file, .. }) } => Some(file),
            Content::Response { rest, .. } => rest.file.as_ref().map(|part| &part.file),
            _ => None,
        }
    }

    /// How many descriptors it holds.
    #[must_use]
    pub fn descriptors(&self) -> usize {
        1 + usize::from(self.file().is_some())
    }
}

/// What a parcel is about.
#[derive(Debug)]
pub enum Content {
    /// To the reactor: wait for a whole request, of which `bytes` may hold a part.
    Waiting,
    /// To a worker: serve this request. `bytes` begins with its whole head.
    Request {
        /// The whole body, decoded, if it was read; `bytes` then goes on with what came behind it. Without one the body,
        /// if the head says that there is one, begins behind the head and is still to be read.
        body: Option<StoredBody>,
    },
    /// To the reactor: write this, then go on. `bytes` is what the client has sent meanwhile.
    Response {
        /// What the client has not taken yet.
        rest: Rest,
        /// What comes after it.
        then: Then,
    },
    /// To the reactor: end the connection in an orderly way, which takes a moment.
    Close,
}

/// A request body that was read to its end.
#[derive(Debug)]
pub enum StoredBody {
    /// In memory.
    Memory(Vec<u8>),
    /// In a file that has no name. Its position means nothing.
    File {
        /// The file.
        file: OwnedFd,
        /// The length of the body in bytes, from the start of the file.
        length: u64,
    },
}

/// What is left to be written of a response, in this order.
#[derive(Debug, Default)]
pub struct Rest {
    /// Bytes.
    pub before: Vec<u8>,
    /// A part of a file.
    pub file: Option<FilePart>,
    /// Bytes behind it.
    pub after: Vec<u8>,
}

/// A part of a file.
#[derive(Debug)]
pub struct FilePart {
    /// The file. Its position means nothing.
    pub file: OwnedFd,
    /// Where the part begins.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
}

/// What comes after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next request.
    KeepAlive,
    /// The end.
    Close,
}
