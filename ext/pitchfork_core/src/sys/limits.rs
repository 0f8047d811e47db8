//! How many descriptors this process may have.

use std::os::fd::RawFd;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// As good as no limit: more than the kernel gives to any process.
const PLENTY: usize = 1 << 30;

/// Raises the soft limit of open descriptors to the hard one; says which it is now.
///
/// A limit that cannot be raised stays as it was: whoever asks has to live with the number.
#[must_use]
pub fn raise_descriptors() -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 1024 };
    let raised = soft == hard || setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    usize::try_from(if raised { hard } else { soft }).unwrap_or(PLENTY).min(PLENTY)
}

/// How many descriptors this process may have as it is.
#[must_use]
pub fn descriptors() -> RawFd {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| RawFd::try_from(soft).unwrap_or(RawFd::MAX))
}

/// How many descriptors this process has open; `None` where `/proc` does not tell.
#[must_use]
pub fn open_descriptors() -> Option<usize> {
    // The directory that is read has one itself.
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
}

/// Whether this process may open so many descriptors more. It may be wrong by those that other threads open meanwhile.
#[must_use]
pub fn has_descriptors(count: usize) -> bool {
    // The kernel does not tell, so they are opened.
    (0..count).map(|_| EventFd::from_flags(EfdFlags::EFD_CLOEXEC)).collect::<Result<Vec<_>, _>>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_counted_and_may_all_be_used() {
        let limit = raise_descriptors();
        let held: Vec<_> = (0..50).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let open = open_descriptors().unwrap();
        assert!(open >= held.len() + 3 && open < limit, "{open} of {limit}");
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0, limit as u64);
        assert!(has_descriptors(3));
    }
}
