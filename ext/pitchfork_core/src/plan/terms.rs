//! What goes into the plan, and what comes out of it.

use crate::children::{Child, Kind, Millis, Pid, Token};
use crate::message::Report;

/// What the plan has to know from the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many workers there shall be at the start.
    pub workers: u32,
    /// Soft timeout and clean-up together.
    pub hard_timeout: Millis,
    /// How long a fork and the hooks after it may take.
    pub spawn_timeout: Millis,
    /// How many workers may be missing while they are replaced; `None` means a tenth of them, rounded up.
    pub max_unavailable: Option<u32>,
    /// Whether there shall be a service.
    pub service: bool,
    /// More failures in a row to bring a child up end the server; `None` for never.
    pub max_spawn_errors: Option<u32>,
    /// How many lines the scoreboard has.
    pub slots: u32,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The monitor is set up; boot.
    Start,
    /// A child said something.
    Message(Token, Report),
    /// Nobody can say anything more on this child's channel.
    Closed(Token),
    /// A child of ours was reaped.
    Exited {
        /// Its pid.
        pid: Pid,
    },
    /// There turned out to be no process behind a pid of ours.
    Vanished(Token),
    /// An [`Action`] that starts this child could not be carried out.
    Failed(Token),
    /// A listener that was bound could not begin to listen.
    CannotListen,
    /// A hook in the monitor has asked for the end, with this status.
    ExitAsked(i32),
    /// Somebody signalled the monitor.
    Signal(Signal),
    /// Time has passed, and all that had been said by then was told before.
    Tick,
}

/// Signals to the monitor that ask for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Stop now.
    Int,
    /// Stop when the work in hand is done.
    Quit,
    /// Stop when the work in hand is done.
    Term,
    /// Refork.
    Usr2,
    /// One worker more.
    Ttin,
    /// One worker fewer.
    Ttou,
}

/// Signals from the monitor to its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// `SIGINT`.
    Int,
    /// `SIGTERM`.
    Term,
    /// What the operator wants to be sent first to a child that missed its deadline.
    Overdue,
    /// `SIGKILL`.
    Kill,
}

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For whoever looks into something.
    Debug,
    /// For operators.
    Info,
    /// Something went wrong.
    Error,
    /// The server cannot go on.
    Fatal,
}

/// What shall be done.
#[derive(Clone, Debug)]
pub enum Action {
    /// Fork a mold that boots the application.
    Boot {
        /// Names the spawn.
        token: Token,
        /// Its line on the scoreboard.
        slot: u32,
    },
    /// Fork the reactor.
    StartReactor {
        /// Names the spawn.
        token: Token,
        /// Its line on the scoreboard.
        slot: u32,
    },
    /// Have a mold fork a worker or the service.
    Spawn {
        /// The mold.
        forker: Token,
        /// Names the spawn.
        token: Token,
        /// The child's line on the scoreboard.
        slot: u32,
        /// What the child is for.
        kind: Kind,
        /// The child's generation.
        generation: u32,
    },
    /// Have a worker fork a mold.
    Promote {
        /// The worker.
        forker: Token,
        /// Names the spawn.
        token: Token,
        /// The mold's line on the scoreboard.
        slot: u32,
        /// The mold's generation.
        generation: u32,
    },
    /// Ask a child to finish and exit.
    Dismiss {
        /// The child.
        token: Token,
        /// Whether it shall first serve what waits in the listeners' queues.
        drain: bool,
    },
    /// Tell the reactor, which is on its way out, that nobody else is left.
    Conclude(Token),
    /// Send a signal.
    Signal {
        /// The child.
        token: Token,
        /// Its pid.
        pid: Pid,
        /// The signal.
        kill: Kill,
    },
    /// Drop the monitor's end of a child's channel and free its line on the scoreboard, which also tells a late
    /// child that nobody waits for it.
    Forget {
        /// The child.
        token: Token,
        /// Its line.
        slot: u32,
        /// Its pid, if that was ever known. If not, it may stand in a message that was not read yet.
        pid: Option<Pid>,
    },
    /// Tell a late child to go, but keep listening for its pid.
    Disown {
        /// Its line on the scoreboard.
        slot: u32,
    },
    /// Run the hook for a child that is about to be killed because it missed its deadline.
    HardTimeout(Child),
    /// Run the hook for a child that was reaped.
    Departed(Child),
    /// Log how a child has ended of which no hook is told.
    LogEnd(Child),
    /// This mold is now the one that workers come from; workers of other molds are outdated.
    Current(Token),
    /// Begin to listen: somebody can serve now.
    Listen,
    /// Let no new connection in.
    StopListening,
    /// Write a log line.
    Log(Level, String),
    /// Leave the loop with this status.
    Exit(i32),
}

/// What the plan may read of the scoreboard.
pub trait View {
    /// When the child at this line is overdue; 0 if it has no deadline.
    fn deadline(&self, slot: u32) -> Millis;
    /// How many requests the child at this line has served.
    fn requests(&self, slot: u32) -> u64;
    /// Whether the child at this line may still be forked.
    fn fork_safe(&self, slot: u32) -> bool;
}
