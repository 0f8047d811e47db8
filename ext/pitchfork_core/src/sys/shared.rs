//! Memory that stays shared with every process forked later.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, AtomicU64};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};

use crate::error::Error;

/// Types that may live in zeroed memory which other processes write at any time.
///
/// # Safety
///
/// All zeroes must be a valid value, every field must be an atomic (or padding), and the type must not own
/// anything.
pub unsafe trait Shareable: Sync + 'static {}

// SAFETY: it is one atomic integer, for which zero is a value.
unsafe impl Shareable for AtomicU32 {}

// SAFETY: as above.
unsafe impl Shareable for AtomicU64 {}

/// Maps `count` values, all zero, for the rest of the life of this process and of all its descendants.
///
/// The pages cost nothing before they are written.
pub fn map<T: Shareable>(count: usize) -> Result<&'static [T], Error> {
    let size = NonZeroUsize::new(size_of::<T>() * count)
        .ok_or_else(|| Error::system("mmap", "an empty map", std::io::ErrorKind::InvalidInput))?;
    // SAFETY: a fresh anonymous mapping overlaps nothing.
    let start =
        unsafe { mmap_anonymous(None, size, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED) }
            .map_err(|errno| Error::system("mmap", format!("{size} shared bytes"), errno))?;
    // SAFETY: the mapping is page-aligned, `count` values long, zeroed, and never unmapped; `Shareable` promises
    // that zeroes are valid values and that concurrent writers only touch atomics.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<T>().as_ptr(), count) })
}
