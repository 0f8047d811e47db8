//! How a worker leaves: whoever it may have been woken for is served, and whoever only waits goes on waiting elsewhere,
//! or is parted with where nobody is to be left.

use std::time::{Duration, Instant};

use magnus::{Error, Ruby};
use pitchfork_core::children::Millis;
use pitchfork_core::sys::{clock, filter};

use super::Serving;
use crate::rack::connection::Connection;
use crate::vm::gvl;

/// A queue that has stayed empty for so long at the end of a drain holds nobody any more, unless somebody is still on
/// the way into it.
const QUIET: Duration = Duration::from_millis(50);

/// Who is on the way into a queue is there within this time: the kernel asks those whom it keeps back once more after
/// a second. Others never come, such as the senders of a flood.
const ARRIVAL: Millis = 1_500;

impl Serving {
    /// Takes what this worker may have been woken for just before it was told to leave: the kernel wakes one worker
    /// for a connection, and would not wake another. What waits in sockets that nobody else has is served to the end,
    /// and so is whoever has connected to this worker and was not answered yet.
    pub(super) fn take_last_call(&mut self, ruby: &Ruby) -> Result<(), Error> {
        self.seats.stop_watching();
        // It may have been woken for more than one.
        self.child.house.link.nudge.ring();
        self.give_all_away(ruby);
        self.part_with_idle(ruby)?;
        if let Some(connection) = self.next(ruby) {
            self.serve_connection(ruby, connection)?;
        }
        let refused = self.seats.keep_to_private();
        self.log_failure(ruby, refused);
        let has_queues = self.seats.are_private();
        self.serve_what_is_left(ruby, has_queues, false)
    }

    /// Serves what is in the queues of all. The monitor has seen to it that nothing new gets in.
    pub(super) fn drain(&mut self, ruby: &Ruby) -> Result<(), Error> {
        self.seats.stop_watching();
        self.part_with_idle(ruby)?;
        let refused = self.seats.help_out();
        self.log_failure(ruby, refused);
        self.serve_what_is_left(ruby, true, true)
    }

    /// Serves until nobody is held any more, and the queues, if there are any, stay empty. If `is_last`,
    /// nobody comes after this worker, and those who are on their way through the reactor are served as well.
    fn serve_what_is_left(&mut self, ruby: &Ruby, has_queues: bool, is_last: bool) -> Result<(), Error> {
        let begin = clock::monotonic();
        let end = begin + self.child.house.settings.soft_timeout;
        let mut quiet_since = Instant::now();
        let mut is_last_look = false;
        while clock::monotonic() < end {
            ruby.thread_check_ints()?;
            if self.seats.is_round_over() {
                self.look();
            }
            if is_last {
                self.seats.look_for_requests();
            }
            if let Some(connection) = self.next(ruby) {
                filter::accept_packets(&*connection.socket);
                self.serve_connection(ruby, connection)?;
                quiet_since = Instant::now();
                is_last_look = false;
            } else if !self.seats.held().is_empty()
                || (has_queues && quiet_since.elapsed() < QUIET)
                || (is_last && self.seats.are_requests_owed())
            {
                self.title_waiting(ruby);
                // Not epoll: a Unix listener that was shut down is always ready.
                gvl::wait(ruby, || std::thread::sleep(Duration::from_millis(2)))?;
            } else if !has_queues || is_last_look {
                break;
            } else if clock::monotonic() < begin + ARRIVAL && self.seats.are_awaited() {
                quiet_since = Instant::now();
            } else {
                // Somebody may have arrived between the two questions.
                is_last_look = true;
            }
        }
        Ok(())
    }

    /// Parts with those that wait for their next request. One that has come already is answered.
    fn part_with_idle(&mut self, ruby: &Ruby) -> Result<(), Error> {
        self.is_parting = true;
        for connection in self.seats.held().take_out(Connection::is_idle) {
            self.serve_connection(ruby, connection)?;
        }
        Ok(())
    }

    /// Parts with all that are still held, where the reactor does not take them.
    pub(super) fn part_with_all(&self, ruby: &Ruby) {
        for connection in self.seats.held().take_out(|_| true) {
            if let Err(connection) = self.give_away(ruby, connection) {
                connection.part();
            }
        }
    }
}
