//! The floor itself.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags};
use rustix::process::Signal;

/// A head of any browser, and the largest body of the scenarios.
const BUFFER: usize = 64 * 1024;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// How many events are taken at once.
const EVENTS: usize = 64;
/// The mark of the listener; connections have the numbers of their descriptors.
const LISTENER: u64 = u64::MAX;

/// What each connection gets.
pub struct Service {
    /// Head and body, as they are.
    pub response: Vec<u8>,
    /// How many bytes follow each request head.
    pub body: usize,
    /// How long the application takes.
    pub pause: Duration,
}

impl Service {
    /// Serves one connection after the other, until something fails that is not a client's doing.
    pub fn serve(&self, listener: &OwnedFd) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            // The crate goes straight to these system calls; the standard library would use recvfrom and sendto.
            let connection = match rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                other => other?,
            };
            match self.exchange(&connection, &mut buffer) {
                Ok(()) | Err(Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Serves connections that stay open, whichever has sent something.
    pub fn serve_persistently(&self, listener: &OwnedFd) -> io::Result<()> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        // Other processes may have taken the connection that this one was woken for.
        rustix::io::ioctl_fionbio(listener, true)?;
        epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN | EventFlags::EXCLUSIVE)?;
        let mut buffer = vec![0; BUFFER];
        let mut connections: HashMap<u64, OwnedFd> = HashMap::new();
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            match epoll::wait(&epoll, spare_capacity(&mut events), None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            for event in &events {
                let mark = event.data.u64();
                if mark == LISTENER {
                    let connection = match rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
                        Err(Errno::CONNABORTED | Errno::INTR | Errno::AGAIN) => continue,
                        other => other?,
                    };
                    let mark = connection.as_raw_fd().unsigned_abs().into();
                    epoll::add(&epoll, &connection, EventData::new_u64(mark), EventFlags::IN)?;
                    connections.insert(mark, connection);
                } else if let Some(connection) = connections.get(&mark) {
                    match self.answer(connection, &mut buffer) {
                        Ok(true) => {}
                        Ok(false) | Err(Errno::CONNRESET | Errno::PIPE) => drop(connections.remove(&mark)),
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }

    fn exchange(&self, connection: &OwnedFd, buffer: &mut [u8]) -> Result<(), Errno> {
        if self.answer(connection, buffer)? { rustix::net::shutdown(connection, Shutdown::Write) } else { Ok(()) }
    }

    /// Reads a request and answers it. `false` if the client has left.
    fn answer(&self, connection: &OwnedFd, buffer: &mut [u8]) -> Result<bool, Errno> {
        let mut length = 0;
        while !is_complete(&buffer[..length], self.body) {
            match rustix::io::read(connection, &mut buffer[length..])? {
                0 => return Ok(false),
                more => length += more,
            }
        }
        if !self.pause.is_zero() {
            thread::sleep(self.pause);
        }
        let mut rest = &self.response[..];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(connection, rest)?..];
        }
        Ok(true)
    }
}

/// Whether these bytes are a head and a body of this length.
fn is_complete(bytes: &[u8], body: usize) -> bool {
    if body == 0 {
        return bytes.ends_with(END_OF_HEAD);
    }
    let head = bytes.windows(END_OF_HEAD.len()).position(|window| window == END_OF_HEAD);
    head.is_some_and(|end| bytes.len() >= end + END_OF_HEAD.len() + body)
}

/// Starts this program so many times with these arguments, and the listener as its standard input. Comes back when the
/// first of them ends. They are not threads, because threads share a table of descriptors, and wait for each other there.
pub fn in_processes(listener: &OwnedFd, workers: NonZeroUsize, arguments: &[OsString]) -> io::Result<()> {
    let mut children = Vec::new();
    for _ in 0..workers.get() {
        let mut command = Command::new(env::current_exe()?);
        children.push(command.args(arguments).stdin(listener.try_clone()?).spawn()?);
    }
    let Some(first) = children.first_mut() else { return Ok(()) };
    let status = first.wait()?;
    Err(io::Error::other(format!("a worker ended: {status}")))
}

/// The kernel ends this process when its parent has ended, however that was.
pub fn end_with_the_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?)
}
