//! Hashes that are filled at once.

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::value::ReprValue;
use magnus::{Error, RHash, RString, Value};

/// How many entries wait to be stored. More of them are stored in several steps.
const ROOM: usize = 32;

/// A hash, and entries on their way into it. Storing many at once costs half of storing each.
///
/// It lives on the stack, where Ruby's collector finds the entries; it must not be put into a box.
pub struct Filling {
    hash: RHash,
    /// Keys and values in turn, the first `len` of which are valid.
    entries: [rb_sys::VALUE; 2 * ROOM],
    len: usize,
}

impl Filling {
    /// A copy of `template`, which is to get more entries.
    pub fn copy_of(template: RHash) -> Result<Self, Error> {
        // SAFETY: `template` is a Hash, and rb_hash_dup gives a new one. Nothing here is skipped if it raises, which it
        // does below protect.
        let hash = protect(|| unsafe { rb_sys::rb_hash_dup(template.as_raw()) })?;
        // SAFETY: the value has just come from Ruby.
        let hash = unsafe { Value::from_raw(hash) };
        Ok(Self::of(RHash::from_value(hash).unwrap_or_else(|| unreachable!("rb_hash_dup gave no Hash"))))
    }

    /// A hash that is to get more entries.
    pub fn of(hash: RHash) -> Self {
        Self { hash, entries: [0; 2 * ROOM], len: 0 }
    }

    /// Stores an entry, now or later. Of two with the same key the last one counts.
    pub fn set(&mut self, key: RString, value: impl ReprValue) -> Result<(), Error> {
        if self.len == self.entries.len() {
            self.store()?;
        }
        self.entries[self.len] = key.as_raw();
        self.entries[self.len + 1] = value.as_value().as_raw();
        self.len += 2;
        Ok(())
    }

    /// The hash, with all entries.
    pub fn finish(&mut self) -> Result<RHash, Error> {
        self.store()?;
        Ok(self.hash)
    }

    fn store(&mut self) -> Result<(), Error> {
        let Self { hash, entries, len } = self;
        protect(|| {
            // SAFETY: the first `len` entries are values that were alive when they were set, and the collector has found
            // them on this stack ever since. Ruby copies them. Nothing here is skipped if it raises, which it does below
            // protect.
            unsafe {
                rb_sys::rb_hash_bulk_insert((*len).cast_signed() as std::ffi::c_long, entries.as_ptr(), hash.as_raw());
            };
            rb_sys::Qnil.into()
        })?;
        self.len = 0;
        Ok(())
    }
}
