//! The processes: loops that perform what has been decided.
//!
//! A fork returns. The child hands its new [`Role`] up a shallow stack to [`run_child`], at the base of every child,
//! which runs one role after another. So a hundred generations use no more stack than one.

pub mod child;
pub mod clockwork;
pub mod held;
pub mod mold;
pub mod monitor;
mod outlet;
pub mod prepare;
pub mod private;
pub mod reactor;
pub mod seats;
pub mod server;
pub mod service;
pub mod sibling;
pub mod signals;
pub mod watcher;
pub mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};

use magnus::value::ReprValue;
use magnus::{Error, Ruby};

use crate::vm::exit;
use mold::Mold;
use server::Server;
use service::Service;
use worker::Worker;

/// What a child does.
pub enum Role {
    /// Holds the application and forks workers.
    Mold(Box<Mold>),
    /// Serves requests.
    Worker(Box<Worker>),
    /// Runs the user's threads.
    Service(Box<Service>),
}

/// What comes after a role.
pub enum Next {
    /// This process ends with this status.
    Exit(i32),
    /// This is a new process, with a new role.
    Become(Role),
}

impl Role {
    fn run(self, ruby: &Ruby) -> Result<Next, Error> {
        match self {
            Self::Mold(mold) => mold.run(ruby),
            Self::Worker(worker) => worker.run(ruby),
            Self::Service(service) => service.run(ruby),
        }
    }
}

/// The base of a child: it runs its roles, and neither returns to the program that was forked nor lets an exception
/// through to it.
pub fn run_child(ruby: &Ruby, server: Server, role: Role) -> ! {
    let mut next = Next::Become(role);
    loop {
        next = match next {
            Next::Exit(status) => exit::exit(ruby, status),
            Next::Become(role) => match catch_unwind(AssertUnwindSafe(|| role.run(ruby))) {
                Ok(Ok(next)) => next,
                Ok(Err(error)) => Next::Exit(status_of(ruby, server, &error)),
                // The panic's message went to stderr when it happened.
                Err(_) => Next::Exit(1),
            },
        };
    }
}

/// The status of a `SystemExit`.
fn exit_status(exit: &Error) -> i32 {
    let status = exit.value().map(|exit| exit.funcall::<_, _, i32>("status", ()));
    status.and_then(Result::ok).unwrap_or(1)
}

/// The exit status that an error asks for; what asks for no exit is logged.
fn status_of(ruby: &Ruby, server: Server, error: &Error) -> i32 {
    if error.is_kind_of(ruby.exception_system_exit()) {
        return exit_status(error);
    }
    if error.is_kind_of(ruby.exception_signal()) {
        return 0;
    }
    server.log_error(ruby, "unexpected error", error);
    1
}
