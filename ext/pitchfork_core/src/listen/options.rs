//! How a listening socket is set up.

use std::io;

use socket2::Socket;

use super::Address;
use crate::error::Error;
use crate::sys::tcp;

/// What the configuration says about one socket. What does not apply to its kind of address has no effect on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many connections the kernel keeps for us before somebody accepts them; listen(2).
    pub backlog: i32,
    /// `SO_RCVBUF`, in bytes; the kernel's choice if `None`. See socket(7).
    pub receive_buffer: Option<usize>,
    /// `SO_SNDBUF`, in bytes; the kernel's choice if `None`. See socket(7).
    pub send_buffer: Option<usize>,
    /// `TCP_NODELAY`: what is written is sent at once.
    pub tcp_nodelay: bool,
    /// `TCP_CORK`: only full segments are sent, until the connection is closed or 200 ms have passed. See tcp(7).
    pub tcp_nopush: bool,
    /// `TCP_DEFER_ACCEPT`, in seconds: for how long a connection on which nothing was sent yet is kept back; 0 for not
    /// at all.
    pub tcp_defer_accept: u32,
    /// `IPV6_V6ONLY`; the system's choice if `None`. See ipv6(7).
    pub ipv6_only: Option<bool>,
    /// `SO_REUSEPORT`: other sockets that say so too may be bound to the same address.
    pub reuse_port: bool,
    /// The permissions that the file of a Unix socket shall not have.
    pub umask: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backlog: 1024,
            receive_buffer: None,
            send_buffer: None,
            tcp_nodelay: true,
            tcp_nopush: false,
            tcp_defer_accept: 1,
            ipv6_only: None,
            reuse_port: false,
            umask: 0,
        }
    }
}

impl Options {
    /// Sets what may be set at any time in a socket's life. Accepted sockets inherit all of it from their listener,
    /// which saves system calls for each of them.
    pub(super) fn tune(&self, socket: &Socket, address: &Address) -> Result<(), Error> {
        if let Some(bytes) = self.receive_buffer {
            check(socket.set_recv_buffer_size(bytes), "SO_RCVBUF", address)?;
        }
        if let Some(bytes) = self.send_buffer {
            check(socket.set_send_buffer_size(bytes), "SO_SNDBUF", address)?;
        }
        if let Address::Tcp(_) = address {
            // A peer that has vanished without a word is found out at last, by whoever hijacks a connection too.
            check(socket.set_keepalive(true), "SO_KEEPALIVE", address)?;
            check(socket.set_tcp_nodelay(self.tcp_nodelay), "TCP_NODELAY", address)?;
            check(socket.set_tcp_cork(self.tcp_nopush), "TCP_CORK", address)?;
            check(tcp::set_defer_accept(socket, self.tcp_defer_accept), "TCP_DEFER_ACCEPT", address)?;
        }
        Ok(())
    }

    /// Sets what has to be known before the socket is bound.
    pub(super) fn prepare(&self, socket: &Socket, address: &Address) -> Result<(), Error> {
        let Address::Tcp(tcp) = address else { return Ok(()) };
        check(socket.set_reuse_address(true), "SO_REUSEADDR", address)?;
        check(socket.set_reuse_port(self.reuse_port), "SO_REUSEPORT", address)?;
        match self.ipv6_only {
            Some(only) if tcp.is_ipv6() => check(socket.set_only_v6(only), "IPV6_V6ONLY", address),
            _ => Ok(()),
        }
    }
}

fn check(result: io::Result<()>, option: &str, address: &Address) -> Result<(), Error> {
    result.map_err(|error| Error::system("setsockopt", format!("{option} of {address}"), error))
}
