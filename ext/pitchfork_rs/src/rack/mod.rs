//! From a connection to `app.call` and back.

pub mod body;
pub mod buffer;
pub mod call;
pub mod connection;
pub mod env;
pub mod exchange;
pub mod framed;
pub mod handler;
pub mod hijack;
pub mod keys;
mod names;
pub mod response;
pub mod sender;
pub mod settings;
pub mod store;
pub mod transmit;
