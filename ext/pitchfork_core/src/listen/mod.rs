//! Where the server listens: addresses, and the sockets bound to them.

mod address;
mod listener;

pub use address::Address;
pub use listener::{Listener, Options};
