//! Ruby strings and their bytes.

use std::ffi::{c_char, c_long};

use magnus::{RString, Ruby, rb_sys::FromRawValue};

/// SAFETY: these functions of Ruby's need no more than a VM that runs.
type Encoding = unsafe extern "C" fn() -> *mut rb_sys::rb_encoding;

fn make(bytes: &[u8], encoding: Encoding) -> RString {
    // SAFETY: pointer and length describe `bytes`, which Ruby copies. The function raises only when memory is out,
    // and its result is a String.
    let value = unsafe {
        let (start, len) = (bytes.as_ptr().cast::<c_char>(), bytes.len().cast_signed() as c_long);
        magnus::Value::from_raw(rb_sys::rb_enc_str_new(start, len, encoding()))
    };
    RString::from_value(value).unwrap_or_else(|| unreachable!("rb_enc_str_new gave no String"))
}

/// A new string: UTF-8 if all bytes are ASCII, else ASCII-8BIT, as Rack wants it.
pub fn rack(ruby: &Ruby, bytes: &[u8]) -> RString {
    if bytes.is_ascii() { make(bytes, rb_sys::rb_utf8_encoding) } else { binary(ruby, bytes) }
}

/// A new string of bytes.
pub fn binary(_ruby: &Ruby, bytes: &[u8]) -> RString {
    make(bytes, rb_sys::rb_ascii8bit_encoding)
}

/// Lends the bytes of a string to `read`.
///
/// The bytes stay where they are only while no Ruby code runs. `Send` keeps a handle on Ruby, or any Ruby value, out
/// of the closure, so that it has nothing to run Ruby code with.
pub fn with_bytes<R>(string: RString, read: impl FnOnce(&[u8]) -> R + Send) -> R {
    // SAFETY: `string` is on our stack, so it lives; nobody can change it while `read` runs, as said above.
    read(unsafe { string.as_slice() })
}

/// Lends the bytes of two strings, under the same condition as [`with_bytes`].
pub fn with_both<R>(one: RString, other: RString, read: impl FnOnce(&[u8], &[u8]) -> R + Send) -> R {
    // SAFETY: as above, for both.
    unsafe { read(one.as_slice(), other.as_slice()) }
}
