//! Why the reactor answers a request itself.

use thiserror::Error;

use crate::http::Reject;

/// Why a request is answered with an error that no worker sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its client has begun a head and has not come to its end.
    #[error("the request head did not arrive in time")]
    LateHead,
    /// The same of a body.
    #[error("the client sent the request body too slowly")]
    LateBody,
    /// There is no room for its body.
    #[error("the request body could not be buffered")]
    Unstored,
    /// It is no request that may be served.
    #[error(transparent)]
    Malformed(#[from] Reject),
}

impl Refusal {
    /// The status of the answer.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::LateHead | Self::LateBody => 408,
            Self::Unstored => 500,
            Self::Malformed(reject) => reject.status(),
        }
    }
}
