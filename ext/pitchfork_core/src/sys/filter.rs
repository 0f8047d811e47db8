//! A socket filter that lets a listener finish what it has without taking anything new.
//!
//! Closing a listener resets every connection that waits in its queue. With this filter the kernel drops each new
//! SYN, so the queue can be emptied first. A client whose SYN is dropped tries again a second later and is refused
//! then, as it would be by any port where nobody listens. See socket(7), `SO_ATTACH_FILTER`.
//!
//! Some systems let only the privileged attach a filter. There the same comes of a demand that no packet from beyond
//! the local link, nor an ordinary one from here, can meet: a time to live of 255. See ip(7), `IP_MINTTL`.

use std::os::fd::{AsFd, AsRawFd};

use crate::error::Error;

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    jump(code, k, 0, 0)
}

#[allow(clippy::cast_possible_truncation)] // the operation codes of classic BPF fit into 16 bits
const fn jump(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt, jf, k }
}

/// Where the flags stand in a TCP header, and the bits of a SYN that opens a connection (RFC 9293, 3.1).
const FLAGS_OFFSET: u32 = 13;
const SYN: u32 = 0x02;
const WHOLE_PACKET: u32 = u32::MAX;
const DROP: u32 = 0;

#[allow(clippy::cast_possible_truncation)] // it is 16
const PROGRAM_LENGTH: libc::socklen_t = size_of::<libc::sock_fprog>() as libc::socklen_t;

/// Makes a TCP listener drop new connections silently.
pub fn drop_new_connections(listener: impl AsFd) -> Result<(), Error> {
    // The filter sees the packet from the TCP header on.
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, FLAGS_OFFSET),
        jump(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, SYN, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, DROP),
        statement(libc::BPF_RET | libc::BPF_K, WHOLE_PACKET),
    ];
    let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    // SAFETY: `filter` points at a program of the stated length, both alive during the call; the kernel copies it.
    let result = unsafe {
        libc::setsockopt(
            listener.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            PROGRAM_LENGTH,
        )
    };
    match result {
        0 => Ok(()),
        _ => demand_time_to_live(&listener, 255),
    }
}

/// Lets an accepted connection be: it inherits what was demanded of new ones.
pub fn accept_packets(connection: impl AsFd) {
    // A filter is inherited as well, but only drops what no connection sends.
    let _ = demand_time_to_live(connection, 0);
}

pub(crate) fn demand_time_to_live(socket: impl AsFd, least: libc::c_int) -> Result<(), Error> {
    #[allow(clippy::cast_possible_truncation)] // it is 4
    const LENGTH: libc::socklen_t = size_of::<libc::c_int>() as libc::socklen_t;
    let mut done = false;
    for (level, name) in [(libc::IPPROTO_IP, libc::IP_MINTTL), (libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT)] {
        // SAFETY: `least` is a live c_int of the stated length; the kernel copies it.
        let result =
            unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, (&raw const least).cast(), LENGTH) };
        done |= result == 0;
    }
    // One of the two is for the other family.
    if done { Ok(()) } else { Err(Error::system("setsockopt", "IP_MINTTL", std::io::Error::last_os_error())) }
}
