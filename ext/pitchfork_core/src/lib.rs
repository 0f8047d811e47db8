//! The parts of pitchfork-rs that need no Ruby: decisions, HTTP, sockets and shared memory.
//!
//! The modules are layered: each may use those above it in this list, never those below.

pub mod children;
pub mod error;
pub mod http;
pub mod listen;
pub mod message;
pub mod plan;
pub mod refork;
pub mod scoreboard;
pub mod sys;
