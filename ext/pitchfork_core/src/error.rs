//! The one error type of this crate: what failed, on what, and why.

use std::io;

/// Anything that can go wrong below the Ruby layer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{call} failed for {subject}: {source}")]
    System {
        /// The system call, by the name of its manual page.
        call: &'static str,
        /// What it was called on.
        subject: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A packet on a channel that is no message.
    #[error("malformed message on a channel: tag {tag}, {length} bytes")]
    Frame {
        /// Its first byte.
        tag: u8,
        /// Its length in bytes.
        length: usize,
    },
    /// A packet that hands no connection over.
    #[error("malformed packet in a queue of connections: {0}")]
    Parcel(&'static str),
    /// Nobody has the other end of a queue any more.
    #[error("a queue of connections has no other end any more")]
    QueueClosed,
    /// A request to start a child arrived without the descriptor it needs.
    #[error("a request to start a child came without its channel")]
    MissingDescriptor,
    /// Text that is no address to listen on.
    #[error("{0:?} is no address to listen on: wanted an IP address with a port, or the absolute path of a socket")]
    Address(String),
    /// A file of `/proc` that does not read as its manual page says.
    #[error("{path} has no field {field}")]
    Proc {
        /// The file.
        path: String,
        /// The field that was looked for.
        field: &'static str,
    },
}

impl Error {
    /// Wraps the failure of a system call.
    pub fn system(call: &'static str, subject: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { call, subject: subject.into(), source: source.into() }
    }

    /// What was called on what, if a call failed: the reason is left to whoever names it better.
    #[must_use]
    pub fn operation(&self) -> Option<String> {
        match self {
            Self::System { call, subject, .. } => Some(format!("{call}({subject})")),
            _ => None,
        }
    }

    /// The failed call's `errno`, if a call failed.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::System { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
