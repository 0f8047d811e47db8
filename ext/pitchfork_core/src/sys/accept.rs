//! `accept4(2)`, which neither the standard library nor nix offers together with the peer's address.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

#[allow(clippy::cast_possible_truncation)] // it is 128
const LENGTH: libc::socklen_t = size_of::<libc::sockaddr_storage>() as libc::socklen_t;

/// Takes one connection that does not block and does not outlive an `exec`, and says where it comes from.
///
/// `None` for the address means a Unix socket. An IPv4 address that was mapped into IPv6 is given as IPv4.
pub fn accept(listener: impl AsFd) -> io::Result<(OwnedFd, Option<IpAddr>)> {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut len = LENGTH;
    // SAFETY: `address` has room for `len` bytes, and the kernel writes no more than that.
    let raw = unsafe {
        libc::accept4(
            listener.as_fd().as_raw_fd(),
            address.as_mut_ptr().cast(),
            &raw mut len,
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else knows its number.
    let connection = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: all zeroes are a valid sockaddr_storage, and the kernel has written a valid one over them.
    let address = unsafe { address.assume_init() };
    Ok((connection, ip(&address)))
}

fn ip(address: &libc::sockaddr_storage) -> Option<IpAddr> {
    match i32::from(address.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this storage holds a sockaddr_in, which is smaller and no stricter in
            // its alignment.
            let address = unsafe { &*(&raw const *address).cast::<libc::sockaddr_in>() };
            Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this storage holds a sockaddr_in6, which is smaller and no stricter in
            // its alignment.
            let address = unsafe { &*(&raw const *address).cast::<libc::sockaddr_in6>() };
            Some(IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)).to_canonical())
        }
        _ => None,
    }
}
