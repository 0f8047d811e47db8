//! The way out of a worker for connections that it does not go on with: to the reactor.

use std::os::fd::AsFd;
use std::sync::Arc;

use pitchfork_core::reactor::{Content, Link, Parcel};
use socket2::Socket;

use crate::rack::connection::Connection;

/// Sends a connection, with these bytes that have come and were not consumed and after so many requests, to where it is
/// waited for. It is not this process's any more then. Gives the content back if there is no room.
pub fn send(
    link: &Link,
    connection: &Connection,
    bytes: Vec<u8>,
    served: u32,
    content: Content,
) -> Result<(), Content> {
    uncork(&connection.socket, connection.is_corked);
    // The worker's own descriptor is closed with whatever still refers to it.
    let Ok(socket) = connection.socket.as_fd().try_clone_to_owned() else { return Err(content) };
    let parcel = Parcel { socket, peer: connection.peer, served, since: connection.since, bytes, content };
    match link.deposits.send(&parcel) {
        Ok(()) => Ok(()),
        // Full, or broken: either way the connection is still here.
        Err(_) => Err(parcel.content),
    }
}

/// Sends a connection that waits for a request. Gives it back if there is no room. It needs no other descriptor, unless
/// the application has kept something of the connection: there may be none.
pub fn send_waiting(link: &Link, mut connection: Connection) -> Result<(), Connection> {
    let bytes = connection.intake.as_ref().map_or_else(Vec::new, |intake| intake.buffer.filled().to_vec());
    let Connection { peer, served, since, .. } = connection;
    let sent = match Arc::try_unwrap(connection.socket) {
        Ok(socket) => {
            uncork(&socket, connection.is_corked);
            let parcel = Parcel { socket: socket.into(), peer, served, since, bytes, content: Content::Waiting };
            let sent = link.deposits.send(&parcel).is_ok();
            connection.socket = Arc::new(parcel.socket.into());
            sent
        }
        Err(shared) => {
            connection.socket = shared;
            send(link, &connection, bytes, served, Content::Waiting).is_ok()
        }
    };
    if sent { Ok(()) } else { Err(connection) }
}

/// The others do not know that there is something to push, and send little anyway.
fn uncork(socket: &Socket, is_corked: bool) {
    if is_corked {
        let _ = socket.set_tcp_cork(false);
    }
}
