//! Where the server listens: addresses, the sockets bound to them, and which worker serves which of them.

mod address;
mod listener;
#[cfg(test)]
mod listener_tests;
mod listeners;
mod options;
mod queues;

pub use address::Address;
pub use listener::{Listener, make_way};
pub use listeners::Listeners;
pub use options::Options;
pub use queues::served_by;
