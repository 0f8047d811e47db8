//! The parts of pitchfork-rs that need no Ruby: decisions, HTTP, sockets and shared memory.
//!
//! The modules are layered, from below: [`error`] and [`children`]; [`message`]; [`sys`]; [`refork`]; [`plan`];
//! [`scoreboard`]; [`listen`]; [`reactor`]. Each may use those before it, never those after. [`http`], [`sparse`] and
//! [`turns`] stand alone, and of the others [`reactor`] alone uses the first.

pub mod children;
pub mod error;
pub mod http;
pub mod listen;
pub mod message;
pub mod plan;
pub mod reactor;
pub mod refork;
pub mod scoreboard;
pub mod sparse;
pub mod sys;
pub mod turns;
