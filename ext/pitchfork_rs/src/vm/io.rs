//! Descriptors that belong to Ruby objects.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// Whether Ruby itself uses this descriptor, such as to wake its threads. It must stay open as long as Ruby is there.
pub fn is_reserved(fileno: RawFd) -> bool {
    // SAFETY: compares a number with a few of Ruby's own.
    unsafe { rb_sys::rb_reserved_fd_p(fileno) != 0 }
}

/// A second descriptor, non-blocking, for the socket of a Ruby IO.
pub fn duplicate(fileno: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the number comes from an open IO, which the caller holds on to during this call.
    let descriptor = unsafe { BorrowedFd::borrow_raw(fileno) }.try_clone_to_owned()?;
    let socket = socket2::Socket::from(descriptor);
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
