//! What an operator may set about waiting for clients.

use crate::children::Millis;
use crate::http::Limits;

/// Limits and patience.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Sizes beyond which a request is refused.
    pub limits: Limits,
    /// For a whole head, from its first byte on; and for that first byte, from the accept on.
    pub header_timeout: Millis,
    /// For the first byte of another request, from the last response on.
    pub keepalive_timeout: Millis,
    /// A client that sends nothing of its body for so long is given up.
    pub body_timeout: Millis,
    /// Bytes a second that a body must come in at, over its whole length and after the first `body_timeout`; 0 for no
    /// such limit.
    pub min_rate: u64,
    /// A client that takes nothing of a response for so long is given up.
    pub write_timeout: Millis,
    /// Up to how many bytes a request body stays in memory.
    pub body_memory: u64,
    /// Whether a request body is kept, so that it can be read again. If not, the application reads it as it comes, so
    /// that it is nothing to wait for.
    pub rewindable: bool,
}
