//! What an operator may set about requests and responses.

use pitchfork_core::children::Millis;
use pitchfork_core::http::Limits;

/// Limits and switches of the HTTP layer.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Sizes beyond which a request is refused.
    pub limits: Limits,
    /// For the whole head of a request.
    pub header_timeout: Millis,
    /// For the next request on a connection that stays open; 0 if none does.
    pub keepalive_timeout: Millis,
    /// How many requests a connection is good for.
    pub keepalive_requests: u32,
    /// A client that sends nothing of its body for so long is given up.
    pub body_timeout: Millis,
    /// Bytes a second that a body must come in at, over its whole length and after the first `body_timeout`; 0 for
    /// no such limit.
    pub min_rate: u64,
    /// A client that takes nothing of a response for so long is given up.
    pub write_timeout: Millis,
    /// How many bytes of a response are left to the reactor where the client does not take them at once.
    pub response_buffer: usize,
    /// Up to how many bytes a request body stays in memory.
    pub body_memory: u64,
    /// Whether a request body is kept, so that it can be read again.
    pub rewindable: bool,
    /// Whether the application may send informational responses.
    pub early_hints: bool,
    /// Whether the application is spared a request whose client has left.
    pub check_client: bool,
}

impl Settings {
    /// The longest time for which a client is waited for without a sign of life.
    pub fn longest_wait(&self) -> Millis {
        self.header_timeout.max(self.body_timeout).max(self.write_timeout)
    }
}
