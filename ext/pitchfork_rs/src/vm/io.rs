//! Descriptors that belong to Ruby objects.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// A second descriptor, non-blocking, for the socket of a Ruby IO.
pub fn duplicate(fileno: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the number comes from an open IO, which the caller holds on to during this call.
    let descriptor = unsafe { BorrowedFd::borrow_raw(fileno) }.try_clone_to_owned()?;
    let socket = socket2::Socket::from(descriptor);
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
