//! The reactor's whole loop, in a thread, with real clients: each test has a reactor of its own.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like a test")]

mod ending;
mod handing_over;
mod house;
mod reading;
mod writing;
