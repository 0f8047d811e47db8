//! A socket filter that lets a listener finish what it has without taking anything new.
//!
//! Closing a listener resets every connection that waits in its queue. With this filter the kernel drops each new
//! SYN, so the queue can be emptied first. A client whose SYN is dropped tries again a second later and is refused
//! then, as it would be by any port where nobody listens. See socket(7), `SO_ATTACH_FILTER`.

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
    if result == 0 {
        Ok(())
    } else {
        Err(Error::system("setsockopt", "SO_ATTACH_FILTER", std::io::Error::last_os_error()))
    }
}
