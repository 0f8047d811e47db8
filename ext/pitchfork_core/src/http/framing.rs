//! Where a request's body ends, and reading it up to there.

use super::bytes::{is_token_text, trim_ows};
use super::chunked::ChunkedDecoder;
use super::head::Version;
use super::limits::Limits;
use super::reject::Reject;

/// How the end of a request's body is known (RFC 9112, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks, and a last one.
    Chunked,
}

/// The largest length: more is not representable as an offset of a file.
pub(super) const MAX_LENGTH: u64 = i64::MAX.unsigned_abs();

/// What the fields of a head say about framing, gathered in their order.
///
/// Disagreement between two parsers about these two fields is what request smuggling lives on, so none of the
/// corrections that RFC 9112 permits is made: whatever is not plain is refused.
#[derive(Debug, Default)]
pub(super) struct FramingFields<'a> {
    length: Option<&'a [u8]>,
    length_repeated: bool,
    /// What is wrong with the list of codings, apart from a coding that is not known here.
    coding_error: Option<Reject>,
    chunked: bool,
    unsupported: bool,
}

impl<'a> FramingFields<'a> {
    pub(super) fn content_length(&mut self, value: &'a [u8]) {
        self.length_repeated |= self.length.replace(value).is_some();
    }

    pub(super) fn transfer_encoding(&mut self, value: &[u8]) {
        for coding in value.split(|&byte| byte == b',').map(trim_ows) {
            // Parameters too are malformed: no coding in use has any, and `chunked` must have none.
            if !is_token_text(coding) {
                self.coding_error = Some(Reject::Coding);
            } else if self.chunked {
                self.coding_error.get_or_insert(Reject::ChunkedNotLast);
            } else if coding.eq_ignore_ascii_case(b"chunked") {
                self.chunked = true;
            } else {
                self.unsupported = true;
            }
        }
    }

    pub(super) fn decide(&self, version: Version, limits: &Limits) -> Result<Framing, Reject> {
        if self.coding_error.is_some() || self.chunked || self.unsupported {
            return if self.length.is_some() {
                Err(Reject::LengthAndCoding)
            } else if version == Version::Http10 {
                Err(Reject::CodingVersion)
            } else if let Some(reject) = self.coding_error {
                Err(reject)
            } else if self.unsupported {
                Err(Reject::CodingUnsupported)
            } else {
                Ok(Framing::Chunked)
            };
        }
        let Some(value) = self.length else {
            return Ok(Framing::None);
        };
        if self.length_repeated {
            return Err(Reject::LengthRepeated);
        }
        let length = parse_length(value).ok_or(Reject::Length)?;
        if limits.max_body_size.is_some_and(|max| length > max) {
            return Err(Reject::BodyTooLarge);
        }
        Ok(Framing::Length(length))
    }
}

/// `1*DIGIT` up to 2^63 − 1.
///
/// `u64::from_str` would accept a plus sign.
pub(super) fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value
        .iter()
        .try_fold(0u64, |length, &byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            length.checked_mul(10)?.checked_add(digit)
        })
        .filter(|&length| length <= MAX_LENGTH)
}

#[derive(Debug)]
enum State {
    Length { remaining: u64 },
    Chunked(ChunkedDecoder),
    Failed(Reject),
}

/// Reads one body out of the bytes of a connection.
#[derive(Debug)]
pub struct BodyDecoder {
    state: State,
    decoded: u64,
}

impl BodyDecoder {
    /// A decoder at the first byte after the head.
    #[must_use]
    pub fn new(framing: Framing, limits: &Limits) -> Self {
        let state = match framing {
            Framing::None => State::Length { remaining: 0 },
            // The head was refused for this already, if it was parsed with the same limits.
            Framing::Length(length) if limits.max_body_size.is_some_and(|max| length > max) => {
                State::Failed(Reject::BodyTooLarge)
            }
            Framing::Length(remaining) => State::Length { remaining },
            Framing::Chunked => State::Chunked(ChunkedDecoder::new(limits)),
        };
        Self { state, decoded: 0 }
    }

    /// Appends to `out` what `input` holds of the body, and tells how many bytes of `input` that took.
    ///
    /// Never takes a byte beyond the end of the message. Fewer bytes than there are are taken only when the
    /// body is done. After an error each call fails alike.
    pub fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Reject> {
        match &mut self.state {
            State::Failed(reject) => Err(*reject),
            State::Length { remaining } => {
                let available = usize::try_from(*remaining).unwrap_or(usize::MAX);
                let taken = &input[..input.len().min(available)];
                out.extend_from_slice(taken);
                self.advance(taken.len() as u64);
                Ok(taken.len())
            }
            State::Chunked(decoder) => {
                let result = decoder.decode(input, out);
                self.decoded = decoder.decoded();
                if let Err(reject) = result {
                    self.state = State::Failed(reject);
                }
                result
            }
        }
    }

    /// Notes that the caller has itself read `n` bytes of a body with a length, straight to where
    /// they were wanted. It must not read more than [`Self::remaining`].
    pub fn advance(&mut self, n: u64) {
        if let State::Length { remaining } = &mut self.state {
            debug_assert!(n <= *remaining, "read beyond the end of the body");
            let n = n.min(*remaining);
            *remaining -= n;
            self.decoded += n;
        }
    }

    /// How many bytes are still to come; `None` if only the chunks will tell.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        match &self.state {
            State::Length { remaining } => Some(*remaining),
            State::Chunked(_) | State::Failed(_) => None,
        }
    }

    /// Whether the whole message was read, trailers included.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Length { remaining } => *remaining == 0,
            State::Chunked(decoder) => decoder.is_done(),
            State::Failed(_) => false,
        }
    }

    /// How many bytes of the body were read so far.
    #[must_use]
    pub fn decoded(&self) -> u64 {
        self.decoded
    }

    /// When a client that began at one time, and was heard last at another, must have sent more: within the timeout for
    /// silence, and at `min_rate` bytes a second (0 for none) over all it has sent. The latter is not asked of the first
    /// moments, in which a slow start is no slow client. All times are in milliseconds.
    #[must_use]
    pub fn deadline(&self, began: u64, heard: u64, timeout: u64, min_rate: u64) -> u64 {
        let silence = heard.saturating_add(timeout);
        match self.decoded.saturating_mul(1_000).checked_div(min_rate) {
            Some(earned) => silence.min(began.saturating_add(timeout).saturating_add(earned)),
            None => silence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(version: Version, lengths: &[&str], codings: &[&str]) -> Result<Framing, Reject> {
        let mut fields = FramingFields::default();
        for length in lengths {
            fields.content_length(length.as_bytes());
        }
        for coding in codings {
            fields.transfer_encoding(coding.as_bytes());
        }
        let limits = Limits { max_body_size: Some(1 << 62), ..Limits::default() };
        fields.decide(version, &limits)
    }

    #[test]
    fn content_length_is_one_plain_number() {
        for (values, expected) in [
            (&[][..], Ok(Framing::None)),
            (&["0"], Ok(Framing::Length(0))),
            (&["42"], Ok(Framing::Length(42))),
            (&["007"], Ok(Framing::Length(7))),
            (&["4611686018427387904"], Ok(Framing::Length(1 << 62))),
            (&["4611686018427387905"], Err(Reject::BodyTooLarge)),
            (&["9223372036854775807"], Err(Reject::BodyTooLarge)),
            (&["9223372036854775808"], Err(Reject::Length)),
            (&["18446744073709551616"], Err(Reject::Length)),
            (&["99999999999999999999999999"], Err(Reject::Length)),
            (&[""], Err(Reject::Length)),
            (&["+1"], Err(Reject::Length)),
            (&["-1"], Err(Reject::Length)),
            (&["1 2"], Err(Reject::Length)),
            (&["1,1"], Err(Reject::Length)),
            (&["0x1"], Err(Reject::Length)),
            (&["1_0"], Err(Reject::Length)),
            (&["1.0"], Err(Reject::Length)),
            (&["5", "5"], Err(Reject::LengthRepeated)),
            (&["5", "6"], Err(Reject::LengthRepeated)),
        ] {
            for version in [Version::Http10, Version::Http11] {
                assert_eq!(decide(version, values, &[]), expected, "{values:?}");
            }
        }
    }

    #[test]
    fn transfer_encoding_is_exactly_one_chunked() {
        for (values, expected) in [
            (&["chunked"][..], Ok(Framing::Chunked)),
            (&["Chunked"], Ok(Framing::Chunked)),
            (&["gzip"], Err(Reject::CodingUnsupported)),
            (&["identity"], Err(Reject::CodingUnsupported)),
            (&["xchunked"], Err(Reject::CodingUnsupported)),
            (&["gzip, chunked"], Err(Reject::CodingUnsupported)),
            (&["gzip", "chunked"], Err(Reject::CodingUnsupported)),
            (&["chunked, chunked"], Err(Reject::ChunkedNotLast)),
            (&["chunked", "chunked"], Err(Reject::ChunkedNotLast)),
            (&["chunked, gzip"], Err(Reject::ChunkedNotLast)),
            (&["gzip, chunked, chunked"], Err(Reject::ChunkedNotLast)),
            (&["chunked", "identity"], Err(Reject::ChunkedNotLast)),
            (&[""], Err(Reject::Coding)),
            (&[","], Err(Reject::Coding)),
            (&["chunked,"], Err(Reject::Coding)),
            (&[", chunked"], Err(Reject::Coding)),
            (&["chunked;q=1"], Err(Reject::Coding)),
            (&["\"chunked\""], Err(Reject::Coding)),
            (&["chunked x"], Err(Reject::Coding)),
            (&["\u{b}chunked"], Err(Reject::Coding)),
        ] {
            assert_eq!(decide(Version::Http11, &[], values), expected, "{values:?}");
            let old = decide(Version::Http10, &[], values);
            assert_eq!(old, Err(Reject::CodingVersion), "{values:?}");
            let both = decide(Version::Http11, &["1"], values);
            assert_eq!(both, Err(Reject::LengthAndCoding), "{values:?}");
        }
    }

    #[test]
    fn a_body_with_a_length_ends_there() {
        let mut decoder = BodyDecoder::new(Framing::Length(5), &Limits::default());
        let mut out = Vec::new();
        assert_eq!(decoder.decode(b"ab", &mut out), Ok(2));
        assert_eq!((decoder.remaining(), decoder.is_done()), (Some(3), false));
        decoder.advance(1);
        assert_eq!(decoder.decode(b"defGET /", &mut out), Ok(2));
        assert_eq!(out, b"abde");
        assert_eq!((decoder.remaining(), decoder.is_done()), (Some(0), true));
        assert_eq!(decoder.decode(b"GET /", &mut out), Ok(0));
        assert_eq!(decoder.decoded(), 5);
    }

    #[test]
    fn no_body_is_done_at_once() {
        let mut decoder = BodyDecoder::new(Framing::None, &Limits::default());
        assert!(decoder.is_done());
        assert_eq!(decoder.decode(b"GET /", &mut Vec::new()), Ok(0));
    }

    #[test]
    fn a_failed_decoder_stays_failed() {
        let mut decoder = BodyDecoder::new(Framing::Chunked, &Limits::default());
        let mut out = Vec::new();
        assert_eq!(decoder.decode(b"1\r\naX", &mut out), Err(Reject::ChunkEnd));
        assert_eq!(decoder.decode(b"\r\n0\r\n\r\n", &mut out), Err(Reject::ChunkEnd));
        assert!(!decoder.is_done());
        assert_eq!((decoder.decoded(), decoder.remaining()), (1, None));
    }

    #[test]
    fn a_length_over_the_limit_is_refused() {
        let limits = Limits { max_body_size: Some(4), ..Limits::default() };
        let mut decoder = BodyDecoder::new(Framing::Length(5), &limits);
        assert_eq!(decoder.decode(b"a", &mut Vec::new()), Err(Reject::BodyTooLarge));
        let mut decoder = BodyDecoder::new(Framing::Length(4), &limits);
        assert_eq!(decoder.decode(b"a", &mut Vec::new()), Ok(1));
    }
}
