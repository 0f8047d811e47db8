//! Ending a forked child.

use std::ffi::c_int;

use magnus::Ruby;

/// Ends this process the way `fork { … }` does: `at_exit` blocks run, seeing a `SystemExit` of this status, and
/// control never returns to the program that was forked.
pub fn exit(_ruby: &Ruby, status: c_int) -> ! {
    // SAFETY: to be called with the address of a live c_int, below protect.
    unsafe extern "C" fn raise(status: rb_sys::VALUE) -> rb_sys::VALUE {
        // SAFETY: called below protect with the address of a live c_int; raises SystemExit, and nothing in between
        // owns anything.
        unsafe { rb_sys::rb_exit(*(status as *const c_int)) }
    }
    let mut state = 0;
    // SAFETY: the raise is caught by protect; ruby_stop then runs the exit handlers and does not return.
    unsafe {
        rb_sys::rb_protect(Some(raise), (&raw const status) as rb_sys::VALUE, &raw mut state);
        rb_sys::ruby_stop(state)
    }
}
