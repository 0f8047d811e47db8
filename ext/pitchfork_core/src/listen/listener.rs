//! One bound socket.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::stat::{Mode, umask};
use socket2::{Domain, SockAddr, Socket, Type};

use super::{Address, Options};
use crate::error::Error;
use crate::sys;

/// A bound socket, inherited by every process forked after it.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    origin: Origin,
    backlog: i32,
    /// Whether its connections keep back what does not fill a segment.
    is_corked: bool,
    /// Whether it is not the first queue of its address.
    is_further: bool,
}

/// Where a socket comes from.
#[derive(Debug)]
enum Origin {
    /// From here; device and inode of the file if it is a Unix socket.
    Bound(Option<(u64, u64)>),
    /// From a supervisor, who keeps it, and to whom it matters what becomes of it.
    Inherited,
}

impl Listener {
    /// Binds an address, but does not listen yet: a client is refused rather than kept waiting for a boot.
    pub fn bind(address: Address, options: Options) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::system("bind", address.to_string(), error);
        let name = match &address {
            Address::Tcp(tcp) => SockAddr::from(*tcp),
            Address::Unix(path) => SockAddr::unix(path).map_err(failed)?,
        };
        let socket = Socket::new(name.domain(), Type::STREAM.nonblocking().cloexec(), None)
            .map_err(|error| Error::system("socket", address.to_string(), error))?;
        options.prepare(&socket, &address)?;
        options.tune(&socket, &address)?;
        match address {
            Address::Tcp(_) => socket.bind(&name),
            Address::Unix(_) => bind_with_umask(&socket, &name, options.umask),
        }
        .map_err(failed)?;
        // Port 0 asks for any free port; everybody wants to know which one it became.
        let address = match (address, socket.local_addr().ok().and_then(|bound| bound.as_socket())) {
            (Address::Tcp(_), Some(bound)) => Address::Tcp(bound),
            (address, _) => address,
        };
        let origin = Origin::Bound(file_of(&address));
        let is_corked = options.tcp_nopush && matches!(address, Address::Tcp(_));
        Ok(Self { socket, address, origin, backlog: options.backlog, is_corked, is_further: false })
    }

    /// Binds as many sockets as there shall be queues, all to one address.
    pub fn bind_queues(address: Address, options: Options, queues: usize) -> Result<Vec<Self>, Error> {
        let options = Options { reuse_port: options.reuse_port || queues > 1, ..options };
        let mut bound = vec![Self::bind(address, options)?];
        while bound.len() < queues {
            // The first one tells which port 0 has become.
            let queue = Self::bind(bound[0].address.clone(), options)?;
            bound.push(Self { is_further: true, ..queue });
        }
        Ok(bound)
    }

    /// Takes over a bound socket that was inherited; `is_further` if it is not the first one of its address.
    ///
    /// What the options say about sockets in use is set; what belongs to the making of a socket (its backlog if it
    /// listens already, whether it shares its port, the permissions of its file) was the supervisor's to choose.
    pub fn adopt(socket: OwnedFd, options: Options, is_further: bool) -> Result<Self, Error> {
        let socket = Socket::from(socket);
        let address = (socket.local_addr())
            .and_then(|name| Address::of(&name).ok_or_else(|| Errno::EAFNOSUPPORT.into()))
            .map_err(|error| Error::system("getsockname", "an inherited socket", error))?;
        let failed = |error| Error::system("fcntl", address.to_string(), error);
        // With several processes at it, one that finds the queue empty must not be stuck there.
        socket.set_nonblocking(true).map_err(failed)?;
        socket.set_cloexec(true).map_err(failed)?;
        options.tune(&socket, &address)?;
        let is_corked = options.tcp_nopush && matches!(address, Address::Tcp(_));
        Ok(Self { socket, address, origin: Origin::Inherited, backlog: options.backlog, is_corked, is_further })
    }

    /// Begins to listen. Fails if the file of a Unix socket has been replaced since it was bound: nobody could reach it.
    pub fn listen(&self) -> Result<(), Error> {
        match &self.origin {
            Origin::Inherited if self.socket.is_listener().unwrap_or(false) => return Ok(()),
            Origin::Bound(file) if file_of(&self.address) != *file => {
                return Err(Error::system("listen", self.address.to_string(), Errno::EADDRINUSE));
            }
            _ => {}
        }
        self.socket.listen(self.backlog).map_err(|error| Error::system("listen", self.address.to_string(), error))
    }

    /// Lets no new connection in, for all processes that share this socket. What is in the queue stays there.
    ///
    /// A supervisor's socket is left as it is: it outlives this server, and so would whatever is done to it.
    pub fn refuse_new(&self) -> Result<(), Error> {
        match (&self.origin, &self.address) {
            (Origin::Inherited, _) => Ok(()),
            (Origin::Bound(_), Address::Tcp(_)) => {
                // What was kept back until now has to come out before the end.
                let _ = sys::tcp::set_defer_accept(&self.socket, 0);
                sys::filter::drop_new_connections(&self.socket)
            }
            // unix(7) knows no filters for this, but a listener that is shut down for reading refuses connections
            // and still gives out those it has.
            (Origin::Bound(_), Address::Unix(_)) => self
                .socket
                .shutdown(std::net::Shutdown::Read)
                .map_err(|error| Error::system("shutdown", self.address.to_string(), error)),
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

    /// Whether a supervisor has made it, and keeps it.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        matches!(self.origin, Origin::Inherited)
    }

    /// Whether what is written to its connections has to be pushed (`TCP_CORK`).
    #[must_use]
    pub fn is_corked(&self) -> bool {
        self.is_corked
    }

    /// How log lines tell it.
    #[must_use]
    pub fn to_log(&self) -> String {
        let further = if self.is_further { " (SO_REUSEPORT)" } else { "" };
        format!("addr={} fd={}{further}", self.address, self.fileno())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Removes what nobody listens on any more from the path of a Unix socket, and says whether there was something.
///
/// Fails with `EADDRINUSE` if somebody does listen there, and with `ENOTSOCK` if it is another kind of file: that was
/// not made by a server, and is not for a server to remove.
pub fn make_way(address: &Address) -> Result<bool, Error> {
    let Address::Unix(path) = address else { return Ok(false) };
    // Where there is nothing, or nothing to be seen, the bind says what is wrong, if anything is.
    let Ok(file) = fs::metadata(path) else { return Ok(false) };
    if !file.file_type().is_socket() {
        let subject = format!("{address}, which is a file but no socket");
        return Err(Error::system("bind", subject, Errno::ENOTSOCK));
    }
    let failed = |call| move |error| Error::system(call, address.to_string(), error);
    let name = SockAddr::unix(path).map_err(failed("bind"))?;
    // Without waiting: the queue of somebody who listens may be full.
    let probe = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None).map_err(failed("socket"))?;
    match probe.connect(&name) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map(|()| true).map_err(failed("unlink"))
        }
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Ok(false),
        _ => Err(Error::system("bind", address.to_string(), Errno::EADDRINUSE)),
    }
}

impl Address {
    /// The address of a bound socket; an abstract one is written with an `@`, as by systemd and ss(8).
    fn of(name: &SockAddr) -> Option<Self> {
        if let Some(tcp) = name.as_socket() {
            return Some(Self::Tcp(tcp));
        }
        let of_abstract = |name: &[u8]| PathBuf::from(format!("@{}", String::from_utf8_lossy(name)));
        let path = name.as_pathname().map(PathBuf::from).or_else(|| name.as_abstract_namespace().map(of_abstract));
        path.map(Self::Unix)
    }
}

/// Makes the file of a Unix socket whatever the umask of the process is: everybody who may reach the path may connect,
/// as with a TCP port, unless the configuration says otherwise.
fn bind_with_umask(socket: &Socket, name: &SockAddr, mask: u32) -> io::Result<()> {
    let before = umask(Mode::from_bits_truncate(mask));
    let bound = socket.bind(name);
    umask(before);
    bound
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
