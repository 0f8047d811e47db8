//! What a worker does with connections that are not ready for the application: it holds them for a moment, and then
//! they are the reactor's.

use magnus::{Error, Ruby};
use pitchfork_core::children::Millis;

use super::Serving;
use crate::process::child::{Child, House};
use crate::process::outlet;
use crate::rack::connection::Connection;
use crate::rack::handler::Missing;

/// How long a worker holds a connection on which nothing whole comes, before the reactor waits for it.
const PATIENCE: Millis = 1_000;

/// After this time it tries again to get rid of what is the reactor's to wait for.
const PAUSE: Millis = 100;

/// Whether somebody waits for what is sent to the reactor: if there is none, one is started only while the server goes
/// on.
pub(super) fn has_outlet(child: &Child) -> bool {
    let scoreboard = child.house.scoreboard;
    scoreboard.has_reactor() || !scoreboard.is_shutting_down()
}

impl Serving {
    /// Holds a connection that waits for its next request.
    pub(super) fn hold(&mut self, ruby: &Ruby, mut connection: Connection) {
        let has_more = connection.intake.is_some();
        connection.awaits_body = false;
        connection.held_until = connection.since + PATIENCE;
        let deadline = connection.held_until.min(connection.deadline(self.handler.settings()));
        match self.seats.held().hold(connection, deadline) {
            Ok(mark) => {
                if has_more {
                    self.seats.call_again(mark);
                }
                self.burden.watch();
                self.want_reactor(ruby);
            }
            Err(connection) => {
                if let Err(connection) = self.give_away(ruby, connection) {
                    connection.part();
                }
            }
        }
    }

    /// Sends a connection to the reactor to be waited for. Gives it back, without a place here, if there is no room, or
    /// nobody to take it.
    pub(super) fn give_away(&self, ruby: &Ruby, mut connection: Connection) -> Result<(), Connection> {
        self.seats.held().forget(&mut connection);
        if !has_outlet(&self.child) {
            return Err(connection);
        }
        outlet::send_waiting(&self.child.house.link, connection)?;
        self.want_reactor(ruby);
        Ok(())
    }

    /// Sees to it that there is a reactor, soon. What was sent waits for it.
    pub(super) fn want_reactor(&self, ruby: &Ruby) {
        let House { link, scoreboard, .. } = &*self.child.house;
        let wanted = link.want(*scoreboard, &self.child.post.channel);
        self.log_failure(ruby, wanted);
    }

    /// Holds a connection of whose request something is missing, unless it has waited long enough.
    pub(super) fn hold_or_end(
        &mut self,
        ruby: &Ruby,
        mut connection: Connection,
        missing: Missing,
        now: Millis,
    ) -> Result<(), Error> {
        let deadline = connection.deadline(self.handler.settings());
        let is_large = missing == Missing::LargeBody;
        let is_over = deadline <= now || (self.is_parting && connection.is_idle());
        if connection.held_until == 0 {
            connection.held_until = now + PATIENCE;
        }
        // Whether it is too late for a body is the reactor's to say. Here the application would be asked to wait. And
        // while there is no reactor yet, nobody but this process watches its deadline.
        let has_reactor = self.child.house.scoreboard.has_reactor();
        let has_waited = connection.held_until <= now && has_reactor;
        let is_elsewhere = is_large || if is_over { connection.awaits_body } else { has_waited };
        if is_elsewhere {
            match self.give_away(ruby, connection) {
                Ok(()) => return Ok(()),
                Err(given_back) => connection = given_back,
            }
            connection.held_until = now + if is_large { PAUSE } else { PATIENCE };
        } else if connection.held_until <= now {
            connection.held_until = now + PAUSE;
        }
        if is_over || (is_large && self.is_parting) {
            return self.end(ruby, connection);
        }
        let until = deadline.min(connection.held_until);
        let held = self.seats.held();
        let held = if is_large { held.shelve(connection, until) } else { held.hold(connection, until) };
        match held {
            Ok(_) => {
                self.burden.watch();
                self.want_reactor(ruby);
                Ok(())
            }
            Err(connection) => match self.give_away(ruby, connection) {
                Ok(()) => Ok(()),
                Err(connection) => self.serve_request(ruby, connection, true),
            },
        }
    }

    /// Ends a connection on which nothing has come, and waits for what is missing where something has.
    fn end(&mut self, ruby: &Ruby, mut connection: Connection) -> Result<(), Error> {
        self.seats.held().forget(&mut connection);
        if connection.intake.is_some() {
            return self.serve_request(ruby, connection, true);
        }
        connection.part();
        Ok(())
    }

    /// Sends all that are held to the reactor, as far as there is room.
    pub(super) fn give_all_away(&self, ruby: &Ruby) {
        for connection in self.seats.held().take_out(|_| true) {
            if let Err(connection) = self.give_away(ruby, connection) {
                // It has waited here all the time, and goes on waiting, unless something of it was read that may be a
                // whole request: no event would tell of that.
                let is_read = connection.intake.is_some();
                let until = if is_read { 0 } else { connection.deadline(self.handler.settings()) };
                drop(self.seats.held().hold(connection, until));
            }
        }
    }
}
