//! The reactor's side of its fork: what it keeps of the monitor, and what it gets rid of.
//!
//! It was forked through Ruby, and from there on runs none of it: no handler of a signal, no finalizer, no exit block.

use std::os::fd::AsFd;

use pitchfork_core::children::{Pid, Token};
use pitchfork_core::message::{Report, Text};
use pitchfork_core::reactor::{self, Counts, Queues};
use pitchfork_core::scoreboard::Line;
use pitchfork_core::sys::channel::Channel;
use pitchfork_core::sys::{alone, process};

use super::child::Settings;
use crate::rack::settings as rack;
use crate::vm::{io, title};

/// What a reactor has from the monitor.
pub struct Inheritance {
    /// The monitor's pid.
    pub monitor: Pid,
    /// The name of the spawn.
    pub token: Token,
    /// Its end of its channel.
    pub channel: Channel,
    /// Its line on the scoreboard.
    pub line: &'static Line,
    /// The queues, of which it keeps the ends that are its own.
    pub queues: Queues,
    /// What it tells about itself.
    pub counts: Counts,
    /// Limits and switches.
    pub settings: Settings,
}

/// Runs a reactor in a process that was just forked, to its end.
pub fn run(inheritance: Inheritance) -> ! {
    let Inheritance { monitor, token, channel, line, queues, counts, settings } = inheritance;
    let Queues { deposits: (_others, deposits), ready: (ready, _theirs), .. } = queues;
    let death = process::watch(monitor);
    let death = death.as_ref().map(AsFd::as_fd);
    let mut kept = vec![channel.as_fd(), deposits.as_fd(), ready.as_fd()];
    kept.extend(death);
    alone::run(monitor, &kept, io::is_reserved, || {
        // Only other processes are told of it by a title, and the group serves the shell alone: neither is worth an end.
        title::set(format_args!("pitchfork-rs reactor"));
        if settings.setpgid {
            let _ = process::lead_group();
        }
        if !line.belongs_to(token) {
            return 1;
        }
        line.set_pid(std::process::id().cast_signed());
        let log = |text: &str| drop(channel.send(&Report::Complaint(Text::new(text)).encode(), None));
        let patience = settings.hard_timeout;
        let post = reactor::Post { token, line, channel: &channel, monitor, death, patience, log: &log };
        reactor::run(post, &deposits, &ready, &waiting(&settings.rack), counts)
    })
}

/// What the reactor needs of the settings of the HTTP layer.
fn waiting(rack: &rack::Settings) -> reactor::Settings {
    reactor::Settings {
        limits: rack.limits,
        header_timeout: rack.header_timeout,
        keepalive_timeout: rack.keepalive_timeout,
        body_timeout: rack.body_timeout,
        min_rate: rack.min_rate,
        write_timeout: rack.write_timeout,
        body_memory: rack.body_memory,
        rewindable: rack.rewindable,
    }
}
