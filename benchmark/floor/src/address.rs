//! Where to listen, and where to connect to.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;

/// A port, the path of a Unix socket, or a listener that this process has got as its standard input.
#[derive(Debug, Clone)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
    Inherited,
}

impl Address {
    /// As it is given on the command line for a listener on the standard input.
    pub const INHERITED: &str = "-";

    /// A listening socket. Other addresses than those of the loopback are refused.
    pub fn listen(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(address) if address.ip() != Ipv4Addr::LOCALHOST => {
                Err(io::Error::other("only 127.0.0.1 is served"))
            }
            Self::Tcp(address) => Ok(TcpListener::bind(address)?.into()),
            Self::Unix(path) => Ok(UnixListener::bind(path)?.into()),
            Self::Inherited => io::stdin().as_fd().try_clone_to_owned(),
        }
    }

    /// A connected socket.
    pub fn connect(&self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(address) => Ok(TcpStream::connect(address)?.into()),
            Self::Unix(path) => Ok(UnixStream::connect(path)?.into()),
            Self::Inherited => Err(io::Error::other("there is nothing to connect to")),
        }
    }
}

impl FromStr for Address {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.parse() {
            Ok(address) => Self::Tcp(address),
            Err(_) if text == Self::INHERITED => Self::Inherited,
            Err(_) => Self::Unix(PathBuf::from(text)),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => path.display().fmt(formatter),
            Self::Inherited => formatter.write_str("the standard input"),
        }
    }
}
