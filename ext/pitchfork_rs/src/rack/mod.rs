//! From a connection to `app.call` and back.

pub mod body;
pub mod call;
pub mod connection;
pub mod env;
pub mod handler;
pub mod keys;
pub mod response;
pub mod sender;
pub mod store;
