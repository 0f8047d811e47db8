//! A request body that is on its way in.

use super::machine::Circumstances;
use super::settings::Settings;
use crate::children::Millis;
use crate::http::{BodyDecoder, Framing, Reject};

/// A whole body.
#[derive(Debug, PartialEq, Eq)]
pub enum Buffered {
    /// In memory.
    Memory(Vec<u8>),
    /// In the connection's file, this long.
    File(u64),
}

/// What has come of a body. From some length on it belongs into a file, which is somebody else's to write.
#[derive(Debug)]
pub struct Incoming {
    decoder: BodyDecoder,
    /// What has come; once there is a file, what is not in it yet.
    bytes: Vec<u8>,
    /// How much is in the file, if it is to be in one.
    stored: Option<u64>,
    began: Millis,
    heard: Millis,
}

impl Incoming {
    pub(super) fn new(framing: Framing, at: &Circumstances<'_>) -> Self {
        let decoder = BodyDecoder::new(framing, &at.settings.limits);
        Self { decoder, bytes: Vec::new(), stored: None, began: at.now, heard: at.now }
    }

    /// Takes what `input` holds of it; says how much that was. There is more only behind its end.
    pub(super) fn feed(&mut self, input: &[u8], at: &Circumstances<'_>) -> Result<usize, Reject> {
        self.heard = at.now;
        let taken = self.decoder.decode(input, &mut self.bytes)?;
        if self.bytes.len() as u64 > at.settings.body_memory {
            self.stored.get_or_insert(0);
        }
        Ok(taken)
    }

    /// What belongs into the file next.
    pub(super) fn unstored(&self) -> &[u8] {
        if self.stored.is_some() { &self.bytes } else { &[] }
    }

    /// Whether it belongs into a file.
    pub(super) fn is_spilled(&self) -> bool {
        self.stored.is_some()
    }

    /// How much is in the file.
    pub(super) fn stored(&self) -> u64 {
        self.stored.unwrap_or(0)
    }

    /// Notes that what was not in the file is there now. Its memory is given back: there may be many of these, and each
    /// receives rarely.
    pub(super) fn note_stored(&mut self) {
        if let Some(stored) = &mut self.stored {
            *stored += std::mem::take(&mut self.bytes).len() as u64;
        }
    }

    /// The body, once all of it is where it belongs.
    pub(super) fn take_if_complete(&mut self) -> Option<Buffered> {
        if !self.decoder.is_done() {
            return None;
        }
        match self.stored {
            None => Some(Buffered::Memory(std::mem::take(&mut self.bytes))),
            Some(length) if self.bytes.is_empty() => Some(Buffered::File(length)),
            Some(_) => None,
        }
    }

    /// When the client must have sent more.
    pub(super) fn deadline(&self, settings: &Settings) -> Millis {
        self.decoder.deadline(self.began, self.heard, settings.body_timeout, settings.min_rate)
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
    }
}
