//! The `SOCK_SEQPACKET` pair between the monitor and one child: whole messages, in order, with descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, recvmsg, sendmsg,
    socketpair,
};

use crate::error::Error;
use crate::message::{Frame, MAX_FRAME};

/// One end of a channel.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// What [`Channel::receive`] found.
#[derive(Debug)]
pub enum Received {
    /// One message, and the descriptor that came with it.
    Message {
        /// The packet.
        bytes: [u8; MAX_FRAME],
        /// Its length. A longer packet is reported as longer than [`MAX_FRAME`] was not allowed to be: as cut.
        len: usize,
        /// The descriptor beside it.
        descriptor: Option<OwnedFd>,
    },
    /// Nothing waits.
    Empty,
    /// Nobody holds the other end any more.
    Closed,
}

impl Channel {
    /// A new channel: the monitor's end and the child's end. Neither blocks, neither outlives an `exec`.
    pub fn pair() -> Result<(Self, Self), Error> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
            .map_err(|errno| Error::system("socketpair", "a channel", errno))?;
        Ok((Self(ours), Self(theirs)))
    }

    /// Sends one message, and a descriptor beside it. `EAGAIN` when the other side has stopped reading.
    pub fn send(&self, frame: &Frame, descriptor: Option<BorrowedFd<'_>>) -> Result<(), Error> {
        let payload = [IoSlice::new(frame.as_bytes())];
        let raw: Vec<RawFd> = descriptor.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&raw)];
        let control = if raw.is_empty() { &[][..] } else { &rights[..] };
        loop {
            match sendmsg::<UnixAddr>(self.0.as_raw_fd(), &payload, control, MsgFlags::MSG_NOSIGNAL, None) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(Error::system("sendmsg", "a channel", errno)),
            }
        }
    }

    /// Takes one message, if one waits.
    pub fn receive(&self) -> Result<Received, Error> {
        let mut bytes = [0; MAX_FRAME];
        let mut payload = [IoSliceMut::new(&mut bytes)];
        let mut space = nix::cmsg_space!([RawFd; 1]);
        let received = loop {
            let flags = MsgFlags::MSG_CMSG_CLOEXEC;
            match recvmsg::<UnixAddr>(self.0.as_raw_fd(), &mut payload, Some(&mut space), flags) {
                Ok(received) => break received,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(Received::Empty),
                Err(Errno::ECONNRESET) => return Ok(Received::Closed),
                Err(errno) => return Err(Error::system("recvmsg", "a channel", errno)),
            }
        };
        let len = received.bytes;
        let mut descriptor = None;
        // An error here means that this process had no room for the descriptor, which the kernel has closed; the message
        // without it is an order that cannot be carried out.
        for message in received.cmsgs().into_iter().flatten() {
            if let ControlMessageOwned::ScmRights(raw) = message {
                for raw in raw {
                    // SAFETY: the kernel has just made this descriptor for us; nobody else knows its number.
                    descriptor = Some(unsafe { OwnedFd::from_raw_fd(raw) });
                }
            }
        }
        // Messages are never empty: zero bytes mean that the other end was closed.
        if len == 0 { Ok(Received::Closed) } else { Ok(Received::Message { bytes, len, descriptor }) }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Channel {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::children::{Kind, Token};
    use crate::message::{Order, Report};

    fn take(channel: &Channel) -> (Vec<u8>, Option<OwnedFd>) {
        match channel.receive().unwrap() {
            Received::Message { bytes, len, descriptor } => (bytes[..len].to_vec(), descriptor),
            other => panic!("wanted a message, got {other:?}"),
        }
    }

    #[test]
    fn messages_stay_whole_and_in_order() {
        let (monitor, child) = Channel::pair().unwrap();
        assert!(matches!(monitor.receive().unwrap(), Received::Empty));
        child.send(&Report::Registered { pid: 7 }.encode(), None).unwrap();
        child.send(&Report::Ready.encode(), None).unwrap();
        assert_eq!(Report::decode(&take(&monitor).0).unwrap(), Report::Registered { pid: 7 });
        assert_eq!(Report::decode(&take(&monitor).0).unwrap(), Report::Ready);
    }

    #[test]
    fn a_descriptor_travels_beside_a_message() {
        let (monitor, mold) = Channel::pair().unwrap();
        let (ours, theirs) = Channel::pair().unwrap();
        let order = Order::Spawn { token: Token(1), kind: Kind::Worker(0), slot: 0, generation: 0 };
        monitor.send(&order.encode(), Some(theirs.as_fd())).unwrap();
        drop(theirs);
        let (_, descriptor) = take(&mold);
        Channel::from(descriptor.unwrap()).send(&Report::Ready.encode(), None).unwrap();
        assert_eq!(Report::decode(&take(&ours).0).unwrap(), Report::Ready);
        assert!(matches!(ours.receive().unwrap(), Received::Closed));
    }

    #[test]
    fn what_was_said_before_closing_is_still_heard() {
        let (monitor, child) = Channel::pair().unwrap();
        child.send(&Report::Ready.encode(), None).unwrap();
        drop(child);
        assert_eq!(Report::decode(&take(&monitor).0).unwrap(), Report::Ready);
        assert!(matches!(monitor.receive().unwrap(), Received::Closed));
    }

    #[test]
    fn a_full_channel_says_so_and_does_not_block() {
        let (monitor, _child) = Channel::pair().unwrap();
        let error = (0..100_000).find_map(|_| monitor.send(&Report::Ready.encode(), None).err()).unwrap();
        assert_eq!(error.errno(), Some(libc::EAGAIN));
    }
}
