//! Waiting without the global VM lock.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use magnus::{Error, Ruby};

struct Call<F, R> {
    wait: F,
    result: Option<R>,
}

/// Runs `wait`, which must not touch Ruby, while other Ruby threads may run; then lets Ruby handle what came in
/// meanwhile: signals, `Thread#raise`, `Timeout`.
///
/// A signal interrupts a system call in `wait` with `EINTR`. `Ok(None)` means that `wait` was not run at all,
/// because something had come in already: the caller looks again and calls again.
pub fn wait<F, R>(ruby: &Ruby, wait: F) -> Result<Option<R>, Error>
where
    F: FnMut() -> R,
{
    let result = without(wait);
    ruby.thread_check_ints()?;
    Ok(result)
}

/// Locks what another Ruby thread may hold while it waits for the GVL, which this thread therefore must not keep.
pub fn lock<'m, T>(ruby: &Ruby, mutex: &'m Mutex<T>) -> Result<MutexGuard<'m, T>, Error> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => drop(wait(ruby, || std::thread::sleep(Duration::from_millis(1)))?),
        }
    }
}

/// As [`wait`], for a thread that leaves the handling of interrupts to others.
pub fn without<F, R>(wait: F) -> Option<R>
where
    F: FnMut() -> R,
{
    // SAFETY: to be called with the address of a live `Call` that nobody else uses.
    unsafe extern "C" fn call<F: FnMut() -> R, R>(data: *mut c_void) -> *mut c_void {
        // SAFETY: `data` is the `Call` below, which outlives the call and is used by nobody else during it.
        let call = unsafe { &mut *data.cast::<Call<F, R>>() };
        call.result = Some((call.wait)());
        std::ptr::null_mut()
    }
    let mut data = Call { wait, result: None };
    // SAFETY: RUBY_UBF_IO is documented as the constant -1 of this function pointer type, which Ruby compares and
    // never calls. `call` gets a pointer to data that outlives it. The `2` variant returns after an interrupt and
    // never jumps over our frames.
    unsafe {
        let ubf_io = std::mem::transmute::<isize, rb_sys::rb_unblock_function_t>(-1);
        rb_sys::rb_thread_call_without_gvl2(Some(call::<F, R>), (&raw mut data).cast(), ubf_io, std::ptr::null_mut());
    }
    data.result
}
