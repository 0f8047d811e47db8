//! The parts of pitchfork-rs that need no Ruby: decisions, HTTP, sockets and shared memory.
//!
//! The modules are layered: each may use those above it in this list, never those below.

pub mod error;
pub mod children;
pub mod message;
pub mod sys;
pub mod refork;
pub mod plan;
pub mod scoreboard;
pub mod http;
pub mod listen;
