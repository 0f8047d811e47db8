//! The signals that are about logs, and change nothing that the plan knows of.

use std::os::fd::AsFd;

use magnus::{Error, Ruby};
use pitchfork_core::message::Order;
use pitchfork_core::plan::Level;

use super::Monitor;
use crate::process::signals;

impl Monitor {
    /// Looks at the signals that leave all processes as they are.
    pub(super) fn see_to_logs(&self, ruby: &Ruby) -> Result<(), Error> {
        if signals::take(libc::SIGHUP) {
            self.reopen_logs(ruby)?;
        }
        if signals::take(libc::SIGUSR1) {
            self.server.log(ruby, Level::Info, "USR1 received, ignoring it");
        }
        Ok(())
    }

    /// Reopens the log files here, and has all children do the same.
    ///
    /// By an order and not by a signal: it waits in the channel of a child that is busy, or so new that its pid is not
    /// known yet. Since each child reads its orders one after the other, none is forked with a file that its parent
    /// has still to reopen without finding the order itself.
    fn reopen_logs(&self, ruby: &Ruby) -> Result<(), Error> {
        self.server.call(ruby, "reopen_logs", ())?;
        let stderr = std::io::stderr();
        let reactor = self.state.children().reactor().map(|reactor| reactor.token);
        for (token, channel) in &self.channels {
            let beside = (Some(*token) == reactor).then(|| stderr.as_fd());
            // Who does not take it is leaving, or has such an order unread.
            let _ = channel.send(&Order::ReopenLogs.encode(), beside);
            self.announce(*token);
        }
        self.server.log(ruby, Level::Info, "HUP received, reopened the logs");
        Ok(())
    }
}
