//! Short histories of a server, each with one thing that the plan must do.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like a test")]

mod coming_up;
mod reactor;
mod reforks;
mod server;
mod service;
mod shutting_down;
mod without_a_mold;
mod workers;
