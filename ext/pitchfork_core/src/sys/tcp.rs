//! What tcp(7) knows and no library offers.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

#[allow(clippy::cast_possible_truncation)] // it is 4
const INT: libc::socklen_t = size_of::<libc::c_int>() as libc::socklen_t;

/// `TCP_DEFER_ACCEPT`: keeps connections back for so many seconds while nothing is sent on them; 0 lets them through.
///
/// The kernel counts in retransmissions, and rounds up.
pub fn set_defer_accept(listener: impl AsFd, seconds: u32) -> io::Result<()> {
    let seconds = libc::c_int::try_from(seconds).unwrap_or(libc::c_int::MAX);
    // SAFETY: `seconds` is a live c_int of the stated length; the kernel copies it.
    let result = unsafe {
        libc::setsockopt(
            listener.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            INT,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the peer of a TCP connection has closed its side, or has broken the connection off.
///
/// A client that has only said that it will send no more looks the same.
pub fn peer_has_left(connection: impl AsFd) -> io::Result<bool> {
    // The states of the kernel's tcp_states.h in which the peer's FIN, or a reset, has been seen.
    const TIME_WAIT: u8 = 6;
    const CLOSE: u8 = 7;
    const CLOSE_WAIT: u8 = 8;
    const LAST_ACK: u8 = 9;
    const CLOSING: u8 = 11;
    // The state is the first byte of a tcp_info, and the kernel writes no more than it is asked for.
    let mut state: u8 = 0;
    let mut length: libc::socklen_t = 1;
    // SAFETY: `state` has room for the one byte that `length` says.
    let result = unsafe {
        libc::getsockopt(
            connection.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(matches!(state, TIME_WAIT | CLOSE | CLOSE_WAIT | LAST_ACK | CLOSING)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_peer_is_there_until_it_leaves() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut connection, _) = listener.accept().unwrap();
        assert!(!peer_has_left(&connection).unwrap());
        drop(client);
        assert_eq!(connection.read(&mut [0]).unwrap(), 0);
        assert!(peer_has_left(&connection).unwrap());
    }

    #[test]
    fn a_socket_of_another_kind_has_no_such_state() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(peer_has_left(&one).is_err());
        assert!(set_defer_accept(&one, 1).is_err());
    }
}
