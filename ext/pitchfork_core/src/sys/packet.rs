//! `sendmsg(2)` and `recvmsg(2)` for packets that carry several descriptors.
//!
//! nix reports a packet whose descriptors did not all fit as an error, and leaves those that did fit open for ever. So
//! what comes beside a packet is read here.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};

/// The most descriptors beside one packet.
pub const MOST_DESCRIPTORS: usize = 3;

const RIGHTS: usize = MOST_DESCRIPTORS * size_of::<RawFd>();

/// Room for one control message with that many, aligned as its header wants it.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    rights: [u8; RIGHTS],
}

/// What [`receive`] found.
#[derive(Debug)]
pub struct Packet {
    /// How many bytes were written into the caller's buffer.
    pub length: usize,
    /// The descriptors that came with it, in the order in which they were sent.
    pub descriptors: Vec<OwnedFd>,
    /// Whether something is missing: bytes that the buffer had no room for, or descriptors that this process had none for.
    pub cut: bool,
}

/// Sends one packet, made of all the pieces, with the descriptors beside it. `EAGAIN` if the queue is full.
pub fn send(socket: impl AsFd, pieces: &[&[u8]], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let pieces: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control = if raw.is_empty() { &[][..] } else { &rights[..] };
    loop {
        match sendmsg::<UnixAddr>(socket.as_fd().as_raw_fd(), &pieces, control, MsgFlags::MSG_NOSIGNAL, None) {
            Err(Errno::EINTR) => {}
            other => return other.map(drop),
        }
    }
}

/// Takes one packet. `EAGAIN` if none waits. No bytes and no descriptors mean that nobody holds the other end any more.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<Packet, Errno> {
    let mut pieces = [IoSliceMut::new(buffer)];
    let mut control = MaybeUninit::<Control>::zeroed();
    // SAFETY: all zeroes are a msghdr without buffers and without an address.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = pieces.as_mut_ptr().cast();
    message.msg_iovlen = pieces.len() as _;
    let length = loop {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>() as _;
        // SAFETY: `message` refers to one IoSliceMut, which is laid out as an iovec, and to the control buffer, each with
        // its true length; both outlive the call.
        let length = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        match usize::try_from(length) {
            Ok(length) => break length,
            Err(_) if Errno::last() == Errno::EINTR => {}
            Err(_) => return Err(Errno::last()),
        }
    };
    let cut = message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
    Ok(Packet { length, descriptors: rights(&message), cut })
}

/// Whether something that was sent from this end was not received yet.
pub fn has_unreceived(socket: impl AsFd) -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ, which is SIOCOUTQ for sockets, writes one int to where the pointer says, which outlives the call.
    let asked = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    asked == 0 && bytes > 0
}

/// The descriptors in the control messages of what `recvmsg` has just filled in.
fn rights(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut found = Vec::new();
    // SAFETY: `message` was filled in by the kernel and still points at the live control buffer; CMSG_FIRSTHDR and
    // CMSG_NXTHDR give null or a header that lies within it, with its data. The kernel has just made the descriptors in it
    // for us; nobody else knows their numbers.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if (control.cmsg_level, control.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                #[allow(clippy::unnecessary_cast)] // it is narrower with other C libraries
                let size = (control.cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(header);
                for at in 0..size / size_of::<RawFd>() {
                    let raw = RawFd::from_ne_bytes(data.cast::<[u8; size_of::<RawFd>()]>().add(at).read());
                    found.push(OwnedFd::from_raw_fd(raw));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap()
    }

    #[test]
    fn pieces_and_descriptors_arrive_as_one_packet_in_order() {
        let (sending, receiving) = pair();
        let files: Vec<File> = (0..3).map(|_| tempfile::tempfile().unwrap()).collect();
        for (mut file, text) in files.iter().zip(["a", "b", "c"]) {
            file.write_all(text.as_bytes()).unwrap();
        }
        let descriptors: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        send(&sending, &[b"one ", b"", b"two"], &descriptors).unwrap();
        let mut buffer = [0; 100];
        let packet = receive(&receiving, &mut buffer).unwrap();
        assert_eq!((&buffer[..packet.length], packet.cut), (&b"one two"[..], false));
        let texts: Vec<String> = packet
            .descriptors
            .into_iter()
            .map(|descriptor| {
                let mut file = File::from(descriptor);
                let mut text = String::new();
                file.rewind().unwrap();
                file.read_to_string(&mut text).unwrap();
                text
            })
            .collect();
        assert_eq!(texts, ["a", "b", "c"]);
        assert_eq!(receive(&receiving, &mut buffer).unwrap_err(), Errno::EAGAIN);
    }

    #[test]
    fn a_packet_without_descriptors_has_none() {
        let (sending, receiving) = pair();
        send(&sending, &[b"x"], &[]).unwrap();
        let packet = receive(&receiving, &mut [0; 4]).unwrap();
        assert_eq!((packet.length, packet.descriptors.len(), packet.cut), (1, 0, false));
    }

    #[test]
    fn what_does_not_fit_is_said_to_be_missing() {
        let (sending, receiving) = pair();
        send(&sending, &[b"too long"], &[]).unwrap();
        assert!(receive(&receiving, &mut [0; 4]).unwrap().cut);
        // More descriptors than there is room for: those that fit are given out, and closed by whoever gets them.
        let many = vec![sending.as_fd(); MOST_DESCRIPTORS + 2];
        send(&sending, &[b"x"], &many).unwrap();
        let packet = receive(&receiving, &mut [0; 4]).unwrap();
        assert!(packet.cut);
        assert!(packet.descriptors.len() <= MOST_DESCRIPTORS + 1);
    }

    #[test]
    fn what_was_sent_is_known_until_it_is_received() {
        let (sending, receiving) = pair();
        let copy = sending.try_clone().unwrap();
        assert!(!has_unreceived(&sending));
        send(&copy, &[b"x"], &[sending.as_fd()]).unwrap();
        assert!(has_unreceived(&sending), "whoever has sent it");
        receive(&receiving, &mut [0; 4]).unwrap();
        assert!(!has_unreceived(&sending));
    }

    #[test]
    fn the_other_ends_closing_is_no_packet() {
        let (sending, receiving) = pair();
        drop(sending);
        let packet = receive(&receiving, &mut [0; 4]).unwrap();
        assert_eq!((packet.length, packet.descriptors.len()), (0, 0));
    }
}
