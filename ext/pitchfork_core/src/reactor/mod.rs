//! Connections that are not ready for the application, and the process in which they wait.
//!
//! A worker that would have to wait for a client sends the connection to the reactor instead, and gets it back, or another
//! worker does, with a whole request. This module needs no Ruby: the reactor runs none after its fork.
//!
//! From below: a [`Parcel`] is a connection on its way; [`wire`] is its packet, [`Queue`] what the packets wait in.
//! [`machine`] decides what is done with one connection, [`pool`] holds all of them; both are pure. [`run`] performs what
//! they decide. [`Link`] is what workers have of it.

mod counts;
mod incoming;
mod link;
mod mail;
mod outgoing;
mod parcel;
mod queue;
mod ration;
mod refusal;
mod run;
mod settings;
mod timers;
mod traffic;

pub mod machine;
pub mod pool;
pub mod wire;

pub use counts::{Count, Counts};
pub use incoming::Buffered;
pub use link::Link;
pub use outgoing::{Chunk, Outgoing};
pub use parcel::{Content, FilePart, Parcel, Rest, StoredBody, Then};
pub use queue::{Queue, Queues, SendError};
pub use refusal::Refusal;
pub use run::{Post, run};
pub use settings::Settings;
