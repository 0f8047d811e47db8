//! A response body on its way through its framing.

use magnus::value::ReprValue;
use magnus::{RString, Ruby, Value};
use pitchfork_core::http::BodyFraming;
use pitchfork_core::http::chunked::{CHUNK_END, LAST_CHUNK, chunk_header};

use super::sender::{Failure, Sender};

/// How far a body has got.
#[derive(Debug)]
pub struct Framed {
    framing: BodyFraming,
    left: u64,
    cut: bool,
    gone: bool,
}

impl Framed {
    /// Nothing of the body has been sent.
    pub fn new(framing: BodyFraming) -> Self {
        let left = match framing {
            BodyFraming::None => 0,
            BodyFraming::Length(length) => length,
            BodyFraming::Chunked | BodyFraming::Raw | BodyFraming::UntilClose => u64::MAX,
        };
        Self { framing, left, cut: false, gone: false }
    }

    /// Whether the message has no room for a body at all.
    pub fn is_bodyless(&self) -> bool {
        self.framing == BodyFraming::None
    }

    /// How many bytes of a body with a length are still missing.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Whether sending has failed because the client is gone.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Counts bytes that were sent past this.
    pub fn advance(&mut self, sent: u64) {
        self.left = self.left.saturating_sub(sent);
    }

    /// Sends a part of the body.
    pub fn send(&mut self, ruby: &Ruby, sender: &mut Sender, part: RString) -> Result<(), Failure> {
        let len = part.len() as u64;
        if len == 0 {
            return Ok(());
        }
        let sent = if self.framing == BodyFraming::Chunked {
            sender.pending().extend_from_slice(chunk_header(part.len()).as_bytes());
            sender.send_string(ruby, part, usize::MAX).inspect(|()| sender.pending().extend_from_slice(CHUNK_END))
        } else {
            let most = len.min(self.left);
            self.cut |= most < len;
            self.left -= most;
            sender.send_string(ruby, part, usize::try_from(most).unwrap_or(usize::MAX))
        };
        self.gone |= matches!(sent, Err(Failure::Gone));
        sent
    }

    /// Ends the body, or leaves it without its end where the client has to see that it is not whole. Whether it is, as
    /// far as the head has told.
    pub fn finish(&mut self, ruby: &Ruby, sender: &mut Sender, logger: Value) -> Result<bool, Failure> {
        if self.framing == BodyFraming::Chunked {
            sender.pending().extend_from_slice(LAST_CHUNK);
        }
        let sent = sender.flush(ruby);
        self.gone |= matches!(sent, Err(Failure::Gone));
        sent?;
        if let BodyFraming::Length(length) = self.framing {
            let problem = match (self.cut, self.left) {
                (true, _) => "longer",
                (false, 1..) => "shorter",
                _ => return Ok(true),
            };
            let line = format!("the response body is {problem} than its Content-Length of {length} bytes");
            let _ = logger.funcall::<_, _, Value>("error", (line,));
        }
        Ok(!matches!(self.framing, BodyFraming::Length(_)) || self.left == 0)
    }
}
