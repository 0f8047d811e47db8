//! A response that its client has not taken yet.

use super::machine::Circumstances;
use super::parcel::Then;
use super::refusal::Refusal;
use crate::children::Millis;
use crate::http::error_response;

/// A piece to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk<'c> {
    /// These bytes.
    Bytes(&'c [u8]),
    /// This part of the connection's file.
    File {
        /// Where it begins.
        offset: u64,
        /// How many bytes it has; never 0.
        length: u64,
    },
}

/// What is left of a response: bytes, a part of a file, bytes behind it.
#[derive(Debug)]
pub struct Outgoing {
    before: Vec<u8>,
    /// Offset and length of what is left of the file's part.
    file: (u64, u64),
    after: Vec<u8>,
    /// How many of the bytes that come next are written.
    written: usize,
    pub(super) then: Then,
    /// When the client took something last.
    pub(super) heard: Millis,
    /// Why it is no application's, if it is none.
    pub(super) refusal: Option<Refusal>,
}

impl Outgoing {
    /// A response of which so much is left; `file` is the offset and the length of a part.
    #[must_use]
    pub fn new(before: Vec<u8>, file: Option<(u64, u64)>, after: Vec<u8>, then: Then) -> Self {
        Self { before, file: file.unwrap_or_default(), after, written: 0, then, heard: 0, refusal: None }
    }

    pub(super) fn refusing(refusal: Refusal, at: &Circumstances<'_>) -> Self {
        let mut response = Vec::new();
        error_response(&mut response, refusal.status(), at.date);
        Self { heard: at.now, refusal: Some(refusal), ..Self::new(response, None, Vec::new(), Then::Close) }
    }

    /// What comes next.
    pub(super) fn chunk(&self) -> Option<Chunk<'_>> {
        let (offset, length) = self.file;
        if let Some(bytes) = rest(&self.before, self.written) {
            Some(Chunk::Bytes(bytes))
        } else if length > 0 {
            Some(Chunk::File { offset, length })
        } else {
            rest(&self.after, self.written).map(Chunk::Bytes)
        }
    }

    /// Notes that so many bytes of the next chunk are written, or none so far. A chunk that is through frees its memory.
    pub(super) fn advance(&mut self, bytes: u64, now: Millis) {
        self.heard = now;
        let (offset, length) = &mut self.file;
        let part = if !self.before.is_empty() {
            &mut self.before
        } else if *length > 0 {
            let bytes = bytes.min(*length);
            *length -= bytes;
            *offset = offset.saturating_add(bytes);
            return;
        } else {
            &mut self.after
        };
        self.written = self.written.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX));
        if self.written >= part.len() {
            *part = Vec::new();
            self.written = 0;
        }
    }

    /// Whether some of the file is left.
    pub(super) fn has_file(&self) -> bool {
        self.file.1 > 0
    }

    pub(super) fn memory(&self) -> usize {
        self.before.capacity() + self.after.capacity()
    }
}

/// What is left of bytes that are not through.
fn rest(bytes: &[u8], written: usize) -> Option<&[u8]> {
    bytes.get(written..).filter(|rest| !rest.is_empty())
}
