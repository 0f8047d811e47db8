//! HTTP/1.1 as this server speaks it: the request head, the request body's framing, the response head.
//!
//! Nothing here performs I/O, reads a clock or knows Ruby. Bytes go in, decisions come out, and buffers
//! are the caller's, so that a warm connection parses and answers without allocating.
//!
//! Where RFC 9110 and RFC 9112 allow lenience, this layer is strict: something usually stands in front
//! of the server, and the two must agree on where a message ends.

mod bytes;
mod fields;
mod persistence;
mod scan;
mod span;

pub mod chunked;
pub mod date;
pub mod framing;
pub mod head;
pub mod host;
pub mod limits;
pub mod reject;
pub mod response;
pub mod status;
pub mod target;

pub use date::DateCache;
pub use fields::EnvScratch;
pub use framing::{BodyDecoder, Framing};
pub use head::{Head, Progress, Version};
pub use host::Authority;
pub use limits::Limits;
pub use reject::Reject;
pub use response::{BodyFraming, BodySize, EarlyHints, Ending, Outcome, RequestFacts, ResponseHead, error_response};
pub use target::Form;
