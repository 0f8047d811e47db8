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
    /// A client that sends nothing of its body for so long is given up.
    pub body_timeout: Millis,
    /// Bytes a second that a body must come in at, over its whole length and after the first `body_timeout`; 0 for
    /// no such limit.
    pub min_rate: u64,
    /// A client that takes nothing of a response for so long is given up.
    pub write_timeout: Millis,
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
