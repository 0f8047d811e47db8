//! One bound socket.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::errno::Errno;
use nix::sys::socket::{Backlog, Shutdown, listen, shutdown};
use nix::sys::stat::{Mode, umask};
use socket2::{Domain, SockAddr, Socket, Type};

use super::Address;
use crate::error::Error;
use crate::sys;

/// How a socket is set up.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many connections the kernel keeps for us before somebody accepts them; listen(2).
    pub backlog: i32,
}

/// A bound socket, inherited by every process forked after it.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: Address,
    options: Options,
    /// Device and inode of a Unix socket's file.
    file: Option<(u64, u64)>,
}

impl Listener {
    /// Binds an address, but does not listen yet: a client is refused rather than kept waiting for a boot.
    ///
    /// A Unix socket that nobody listens on any more is replaced.
    pub fn bind(address: Address, options: Options) -> Result<Self, Error> {
        let bound = match &address {
            Address::Tcp(tcp) => bind_tcp(&(*tcp).into()),
            Address::Unix(path) => bind_unix(path),
        };
        let socket = bound.map_err(|error| Error::system("bind", address.to_string(), error))?;
        // Port 0 asks for any free port; everybody wants to know which one it became.
        let address = match (address, socket.local_addr().ok().and_then(|bound| bound.as_socket())) {
            (Address::Tcp(_), Some(bound)) => Address::Tcp(bound),
            (address, _) => address,
        };
        let file = file_of(&address);
        Ok(Self { socket: socket.into(), address, options, file })
    }

    /// Begins to listen. Fails if the file of a Unix socket has been replaced since it was bound: nobody could reach it.
    pub fn listen(&self) -> Result<(), Error> {
        if file_of(&self.address) != self.file {
            return Err(Error::system("listen", self.address.to_string(), Errno::EADDRINUSE));
        }
        Backlog::new(self.options.backlog)
            .and_then(|backlog| listen(&self.socket, backlog))
            .map_err(|errno| Error::system("listen", self.address.to_string(), errno))
    }

    /// Lets no new connection in, for all processes that share this socket. What is in the queue stays there.
    pub fn refuse_new(&self) -> Result<(), Error> {
        match self.address {
            Address::Tcp(_) => sys::filter::drop_new_connections(&self.socket),
            // unix(7) knows no filters for this, but a listener that is shut down for reading refuses connections
            // and still gives out those it has.
            Address::Unix(_) => shutdown(self.socket.as_raw_fd(), Shutdown::Read)
                .map_err(|errno| Error::system("shutdown", self.address.to_string(), errno)),
        }
    }

    /// Takes one connection, if one waits. `Ok(None)` also covers a connection that was gone before it was taken,
    /// and a queue that was shut down and is empty.
    pub fn accept(&self) -> Result<Option<(OwnedFd, Option<IpAddr>)>, Error> {
        match sys::accept::accept(&self.socket) {
            Ok(connection) => Ok(Some(connection)),
            Err(error) if is_nothing_to_accept(&error) => Ok(None),
            Err(error) => Err(Error::system("accept4", self.address.to_string(), error)),
        }
    }

    /// Where it is bound.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The number of its descriptor.
    #[must_use]
    pub fn fileno(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn file_of(address: &Address) -> Option<(u64, u64)> {
    let Address::Unix(path) = address else { return None };
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// accept(2) passes on errors of the connection that it would have returned; they are nobody's business here.
fn is_nothing_to_accept(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
    matches!(
        errno,
        Errno::EAGAIN
            | Errno::EINTR
            | Errno::ECONNABORTED
            | Errno::EINVAL
            | Errno::EPERM
            | Errno::EPROTO
            | Errno::ENETDOWN
            | Errno::ENETUNREACH
            | Errno::EHOSTDOWN
            | Errno::EHOSTUNREACH
            | Errno::ENOPROTOOPT
            | Errno::EOPNOTSUPP
            | Errno::ENONET
    )
}

fn bind_tcp(address: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM.nonblocking().cloexec(), None)?;
    socket.set_reuse_address(true)?;
    if address.domain() == Domain::IPV6 {
        socket.set_only_v6(true)?;
    }
    // Accepted sockets inherit it, which saves a system call for each of them.
    socket.set_tcp_nodelay(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn bind_unix(path: &Path) -> io::Result<Socket> {
    let address = SockAddr::unix(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        match UnixStream::connect(path) {
            Ok(_) => return Err(Errno::EADDRINUSE.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            // Let the bind say what is wrong.
            Err(_) => {}
        }
    }
    // Everybody who may reach the path may connect, as with a TCP port.
    let before = umask(Mode::empty());
    let bound = socket.bind(&address);
    umask(before);
    bound.map(|()| socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::time::Duration;

    fn bound(address: &str) -> Listener {
        Listener::bind(address.parse().unwrap(), Options { backlog: 16 }).unwrap()
    }

    fn tcp(listener: &Listener) -> SocketAddr {
        match listener.address() {
            Address::Tcp(address) => *address,
            Address::Unix(_) => panic!("wanted a TCP listener"),
        }
    }

    #[test]
    fn a_bound_port_refuses_until_it_listens() {
        let listener = bound("127.0.0.1:0");
        assert!(TcpStream::connect(tcp(&listener)).is_err());
        listener.listen().unwrap();
        let client = TcpStream::connect(tcp(&listener)).unwrap();
        let (_, peer) = listener.accept().unwrap().unwrap();
        assert_eq!(peer, Some(client.local_addr().unwrap().ip()));
        assert!(listener.accept().unwrap().is_none());
    }

    #[test]
    fn a_port_somebody_listens_on_is_refused_by_name() {
        let listener = bound("127.0.0.1:0");
        listener.listen().unwrap();
        let error = Listener::bind(listener.address().clone(), Options { backlog: 1 }).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EADDRINUSE));
        assert!(error.to_string().contains(&listener.address().to_string()), "{error}");
    }

    #[test]
    fn a_filtered_listener_keeps_its_queue_and_takes_nothing_new() {
        let listener = bound("127.0.0.1:0");
        listener.listen().unwrap();
        let mut early = TcpStream::connect(tcp(&listener)).unwrap();
        listener.refuse_new().unwrap();
        assert!(TcpStream::connect_timeout(&tcp(&listener), Duration::from_millis(200)).is_err());
        let (accepted, _) = listener.accept().unwrap().unwrap();
        drop(listener);
        TcpStream::from(accepted).write_all(b"still here").unwrap();
        let mut text = String::new();
        early.read_to_string(&mut text).unwrap();
        assert_eq!(text, "still here");
    }

    #[test]
    fn without_the_privilege_to_filter_the_queue_is_kept_all_the_same() {
        let listener = bound("127.0.0.1:0");
        listener.listen().unwrap();
        let mut early = TcpStream::connect(tcp(&listener)).unwrap();
        sys::filter::demand_time_to_live(&listener, 255).unwrap();
        assert!(TcpStream::connect_timeout(&tcp(&listener), Duration::from_millis(200)).is_err());
        let (accepted, _) = listener.accept().unwrap().unwrap();
        sys::filter::accept_packets(&accepted);
        drop(listener);
        early.write_all(b"ping").unwrap();
        let mut accepted = TcpStream::from(accepted);
        accepted.set_nonblocking(false).unwrap();
        accepted.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut text = [0; 4];
        accepted.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"ping");
    }

    #[test]
    fn a_unix_socket_that_is_shut_down_keeps_its_queue_and_refuses() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.sock");
        let listener = bound(path.to_str().unwrap());
        listener.listen().unwrap();
        let _early = UnixStream::connect(&path).unwrap();
        listener.refuse_new().unwrap();
        assert_eq!(UnixStream::connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(listener.accept().unwrap().is_some());
        assert!(listener.accept().unwrap().is_none());
    }

    #[test]
    fn a_stale_unix_socket_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.sock");
        drop(bound(path.to_str().unwrap()));
        let listener = bound(path.to_str().unwrap());
        listener.listen().unwrap();
        let error = Listener::bind(listener.address().clone(), Options { backlog: 1 }).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EADDRINUSE));
    }

    #[test]
    fn a_unix_socket_whose_file_was_replaced_is_not_listened_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.sock");
        let first = bound(path.to_str().unwrap());
        let second = bound(path.to_str().unwrap());
        assert_eq!(first.listen().unwrap_err().errno(), Some(libc::EADDRINUSE));
        second.listen().unwrap();
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("precious.txt");
        fs::write(&path, "data").unwrap();
        let address = Address::Unix(path.clone());
        assert!(Listener::bind(address, Options { backlog: 1 }).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }
}
