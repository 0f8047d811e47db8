//! The queues in which connections wait to change hands.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};

use super::parcel::{Content, FilePart, Parcel, Rest, StoredBody};
use super::wire::{self, Kind, Label, MAX_PACKET};
use crate::error::Error;
use crate::sys::bell::Bell;
use crate::sys::packet;

/// What one queue may hold, in bytes as the kernel counts them: about a thousand small packets. It gives more than that
/// to no one who does not ask, and little to whom it does not trust; the queue is then shorter, and full earlier.
const CAPACITY: usize = 1024 * 1024;

const SUBJECT: &str = "a queue of connections";

/// One end of a queue. It neither blocks nor outlives an `exec`.
#[derive(Debug)]
pub struct Queue(OwnedFd);

/// The two queues of a server, with both ends of each: whoever keeps them all, keeps what is in the queues alive.
#[derive(Debug)]
pub struct Queues {
    /// From the workers to the reactor: the sending end, and the receiving one.
    pub deposits: (Queue, Queue),
    /// From the reactor to the workers: the sending end, and the receiving one.
    pub ready: (Queue, Queue),
    /// Rings when all workers shall look for themselves what waits in queues and listeners.
    pub nudge: Bell,
}

/// Why a parcel was not sent. The sender still has it.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no room for it now.
    #[error("the queue is full")]
    Full,
    /// It could not be sent.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl Queues {
    /// Two empty queues, to be inherited by every process forked from now on.
    pub fn new() -> Result<Self, Error> {
        Ok(Self { deposits: Queue::pair()?, ready: Queue::pair()?, nudge: Bell::new()? })
    }
}

impl Queue {
    fn pair() -> Result<(Self, Self), Error> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (sending, receiving) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
            .map_err(|errno| Error::system("socketpair", SUBJECT, errno))?;
        setsockopt(&sending, sockopt::SndBuf, &CAPACITY)
            .map_err(|errno| Error::system("setsockopt", SUBJECT, errno))?;
        Ok((Self(sending), Self(receiving)))
    }

    /// Sends a connection. It is then the receiver's; the sender closes its own descriptors, which the borrow leaves with
    /// it in case there is no room.
    pub fn send(&self, parcel: &Parcel) -> Result<(), SendError> {
        let label = Label::of(parcel);
        let sections = wire::sections(parcel);
        let spilled = if label.is_spilled() { Some(spill(sections)?) } else { None };
        let descriptors: Vec<BorrowedFd<'_>> = std::iter::once(parcel.socket.as_fd())
            .chain(parcel.file().map(AsFd::as_fd))
            .chain(spilled.as_ref().map(AsFd::as_fd))
            .collect();
        let bytes = label.encode();
        let [first, second, third] = if spilled.is_some() { [&[][..]; 3] } else { sections };
        packet::send(&self.0, &[&bytes, first, second, third], &descriptors).map_err(|errno| match errno {
            // The queue; the descriptors that are under way, see unix(7); a queue that is smaller than a packet; memory.
            Errno::EAGAIN | Errno::ETOOMANYREFS | Errno::EMSGSIZE | Errno::ENOBUFS | Errno::ENOMEM => SendError::Full,
            errno => SendError::Failed(Error::system("sendmsg", SUBJECT, errno)),
        })
    }

    /// Whether connections were sent from this end that nobody has taken yet.
    #[must_use]
    pub fn has_untaken(&self) -> bool {
        packet::has_unreceived(&self.0)
    }

    /// Takes one connection; `None` if none waits.
    ///
    /// An error means that a packet was taken and its connection is lost, which only happens where a packet is no parcel,
    /// or where this process has no room for three descriptors more.
    pub fn receive(&self) -> Result<Option<Parcel>, Error> {
        let mut buffer = [0; MAX_PACKET];
        let packet = match packet::receive(&self.0, &mut buffer) {
            Ok(packet) => packet,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(errno) => return Err(Error::system("recvmsg", SUBJECT, errno)),
        };
        if packet.cut {
            return Err(Error::Parcel("this process had no room for all of it"));
        }
        if packet.length == 0 {
            return Err(Error::QueueClosed);
        }
        let (label, inline) = Label::decode(&buffer[..packet.length], packet.descriptors.len())?;
        unpack(&label, inline, packet.descriptors).map(Some)
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Queue {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

/// Puts the sections one behind the other into a file in memory.
fn spill(sections: [&[u8]; wire::SECTIONS]) -> Result<File, SendError> {
    let descriptor = memfd_create(c"pitchfork-rs", MFdFlags::MFD_CLOEXEC).map_err(|errno| match errno {
        Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM => SendError::Full,
        errno => SendError::Failed(Error::system("memfd_create", SUBJECT, errno)),
    })?;
    let file = File::from(descriptor);
    let mut offset = 0;
    for section in sections {
        file.write_all_at(section, offset)
            .map_err(|error| SendError::Failed(Error::system("write", "a file in memory", error)))?;
        offset += section.len() as u64;
    }
    Ok(file)
}

/// Puts a parcel together whose packet was found to be in order.
fn unpack(label: &Label, inline: &[u8], descriptors: Vec<OwnedFd>) -> Result<Parcel, Error> {
    const MISSING: Error = Error::Parcel("a descriptor is missing");
    let mut descriptors = descriptors.into_iter();
    let socket = descriptors.next().ok_or(MISSING)?;
    let file = match label.file {
        Some((offset, length)) => Some(FilePart { file: descriptors.next().ok_or(MISSING)?, offset, length }),
        None => None,
    };
    let [bytes, second, after] = match descriptors.next() {
        Some(spilled) => unspill(label, &File::from(spilled))?,
        None => cut(label, inline)?,
    };
    let content = match label.kind {
        Kind::Waiting => Content::Waiting,
        Kind::Request => Content::Request { body: None },
        Kind::RequestWithBody => Content::Request {
            body: Some(match file {
                Some(FilePart { file, length, .. }) => StoredBody::File { file, length },
                None => StoredBody::Memory(second),
            }),
        },
        Kind::Response(then) => Content::Response { rest: Rest { before: second, file, after }, then },
        Kind::Close => Content::Close,
    };
    let Label { peer, served, since, .. } = *label;
    Ok(Parcel { socket, peer, served, since, bytes, content })
}

fn cut(label: &Label, mut inline: &[u8]) -> Result<[Vec<u8>; wire::SECTIONS], Error> {
    let mut sections = [const { Vec::new() }; wire::SECTIONS];
    for (section, length) in sections.iter_mut().zip(label.sections) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (piece, rest) = inline.split_at_checked(length).ok_or(Error::Parcel("its sections are cut"))?;
        *section = piece.to_vec();
        inline = rest;
    }
    Ok(sections)
}

fn unspill(label: &Label, file: &File) -> Result<[Vec<u8>; wire::SECTIONS], Error> {
    let failed = |error| Error::system("read", "a file in memory", error);
    // A length that the file does not have shall not be asked of the memory.
    if file.metadata().map_err(failed)?.len() != label.total() {
        return Err(Error::Parcel("its file has another length than it says"));
    }
    let mut sections = [const { Vec::new() }; wire::SECTIONS];
    let mut offset = 0;
    for (section, length) in sections.iter_mut().zip(label.sections) {
        *section = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        file.read_exact_at(section, offset).map_err(failed)?;
        offset += length;
    }
    Ok(sections)
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
