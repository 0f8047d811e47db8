//! Handing a connection over to the application.

use std::os::fd::{AsFd, IntoRawFd};
use std::sync::{Arc, Mutex, PoisonError};

use magnus::prelude::*;
use magnus::{Error, RClass, Ruby, Value};
use socket2::{Domain, Socket};

use crate::vm::string;

/// What the application has done with the connection itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Nothing.
    None,
    /// It has used a socket of its own for it, and may have read what comes next.
    Shared,
    /// It has taken it.
    Taken,
}

/// Whether the application has taken the connection, and how it can while the request lasts.
#[derive(Debug)]
pub struct Claim(Mutex<State>);

#[derive(Debug)]
enum State {
    Open {
        socket: Arc<Socket>,
        /// Bytes that were read behind the request head and belong to whoever reads next.
        leftover: Vec<u8>,
        /// Whether the application has used a socket for it.
        is_used: bool,
    },
    Taken,
    Over,
}

impl Claim {
    /// A connection that can be taken.
    pub fn new(socket: Arc<Socket>, leftover: &[u8]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State::Open { socket, leftover: leftover.to_vec(), is_used: false })))
    }

    /// Takes the connection as a Ruby socket, which gives out first what was read already.
    pub fn take(&self, ruby: &Ruby) -> Result<Value, Error> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Open { socket, leftover, .. } = &*state else {
            return Err(gone(ruby));
        };
        let io = ruby_socket(ruby, socket, leftover)?;
        *state = State::Taken;
        Ok(io)
    }

    /// A Ruby socket for the connection, which stays the server's.
    pub fn look(&self, ruby: &Ruby) -> Result<Value, Error> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open { socket, .. } => ruby_socket(ruby, socket, &[]),
            State::Taken | State::Over => Err(gone(ruby)),
        }
    }

    /// The application uses the socket that it was given.
    pub fn share(&self) {
        if let State::Open { is_used, .. } = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            *is_used = true;
        }
    }

    /// From now on it cannot be taken any more. What was done with it until now.
    pub fn expire(&self) -> Use {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = match *state {
            State::Taken => return Use::Taken,
            State::Open { is_used: true, .. } => Use::Shared,
            State::Open { .. } | State::Over => Use::None,
        };
        *state = State::Over;
        used
    }
}

fn gone(ruby: &Ruby) -> Error {
    Error::new(ruby.exception_io_error(), "the connection of this request is already gone")
}

/// A Ruby socket of its own for a connection: `TCPSocket` or `UNIXSocket`. It gives out first what was read already.
pub fn ruby_socket(ruby: &Ruby, socket: &Socket, leftover: &[u8]) -> Result<Value, Error> {
    let failed = |error: std::io::Error| Error::new(ruby.exception_io_error(), error.to_string());
    let domain = socket.domain().map_err(failed)?;
    let descriptor = socket.as_fd().try_clone_to_owned().map_err(failed)?;
    let class: RClass =
        ruby.class_object().const_get(if domain == Domain::UNIX { "UNIXSocket" } else { "TCPSocket" })?;
    let io: Value = class.funcall("for_fd", (descriptor.into_raw_fd(),))?;
    if !leftover.is_empty() {
        io.funcall::<_, _, Value>("ungetbyte", (string::binary(ruby, leftover),))?;
    }
    Ok(io)
}
