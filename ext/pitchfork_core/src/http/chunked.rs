//! The chunked transfer coding (RFC 9112, section 7.1), both ways.

use super::bytes::{is_control, is_token};
use super::framing::MAX_LENGTH;
use super::limits::Limits;
use super::reject::Reject;

/// What ends a chunked body that has no trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// What follows a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";

/// Appends `data` as one chunk; nothing if it is empty, because an empty chunk is the last one.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    out.extend_from_slice(chunk_header(data.len()).as_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(CHUNK_END);
}

/// The line before a chunk's data, for callers that write header, data and [`CHUNK_END`] in one
/// `writev` without copying the data.
#[must_use]
pub fn chunk_header(len: usize) -> ChunkHeader {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = *b"0000000000000000\r\n";
    let mut start = ChunkHeader::DIGITS;
    let mut rest = len;
    loop {
        start -= 1;
        bytes[start] = DIGITS[rest & 0xf];
        rest >>= 4;
        if rest == 0 {
            return ChunkHeader { bytes, start };
        }
    }
}

/// A chunk's size line. See [`chunk_header`].
#[derive(Debug, Clone, Copy)]
pub struct ChunkHeader {
    bytes: [u8; Self::DIGITS + 2],
    start: usize,
}

impl ChunkHeader {
    const DIGITS: usize = 16;

    /// The line, with its CRLF.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size { digits: u8 },
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

/// Takes a chunked body apart, byte for byte, so that no cut between packets matters.
#[derive(Debug)]
pub struct ChunkedDecoder {
    state: State,
    limits: Limits,
    /// Of the current chunk: its size as far as read, then what is left of it.
    size: u64,
    decoded: u64,
    extensions: usize,
    trailer_bytes: usize,
    trailers: usize,
    trailer_name: Name,
}

/// The name of a trailer, as far as it was read: in lower case, and no longer than it takes to know it.
#[derive(Debug, Default)]
struct Name {
    start: [u8; LONGEST_FRAMING_NAME],
    len: usize,
}

const LONGEST_FRAMING_NAME: usize = "transfer_encoding".len();

impl Name {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.start.get_mut(self.len) {
            *place = byte.to_ascii_lowercase();
        }
        self.len += 1;
    }

    /// Whether some reader would take it for a field that frames the message.
    fn frames(&self) -> bool {
        matches!(self.start.get(..self.len), Some(b"content_length" | b"transfer_encoding"))
    }
}

impl ChunkedDecoder {
    /// A decoder at the start of a body.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            state: State::Size { digits: 0 },
            limits: *limits,
            size: 0,
            decoded: 0,
            extensions: 0,
            trailer_bytes: 0,
            trailers: 0,
            trailer_name: Name::default(),
        }
    }

    /// Appends the data in `input` to `out`; returns how many bytes of `input` belong to the message.
    pub fn decode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Reject> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            if self.state == State::Data {
                let rest = &input[at..];
                let left = usize::try_from(self.size).unwrap_or(usize::MAX);
                let data = &rest[..rest.len().min(left)];
                out.extend_from_slice(data);
                at += data.len();
                self.size -= data.len() as u64;
                self.decoded += data.len() as u64;
                if self.size == 0 {
                    self.state = State::DataCr;
                }
            } else {
                self.state = self.step(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// Whether the last chunk and the trailers were read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// How many bytes of data were read so far.
    #[must_use]
    pub fn decoded(&self) -> u64 {
        self.decoded
    }

    fn step(&mut self, byte: u8) -> Result<State, Reject> {
        match (self.state, byte) {
            (State::Size { digits }, _) => self.size_byte(digits, byte),
            (State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Extension, _) => self.extension_byte(byte),
            (State::SizeLf, b'\n') if self.size == 0 => Ok(State::TrailerStart),
            (State::SizeLf, b'\n') => Ok(State::Data),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Size { digits: 0 }),
            // A chunk longer than its size: RFC 9112 does not say so, but whoever counts differently
            // sees another message.
            (State::DataCr | State::DataLf, _) => Err(Reject::ChunkEnd),
            (State::SizeLf | State::TrailerLf | State::EndLf, byte) if byte != b'\n' => Err(Reject::BareCr),
            _ => self.trailer_byte(byte),
        }
    }

    fn size_byte(&mut self, digits: u8, byte: u8) -> Result<State, Reject> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\n' => return Err(Reject::BareLf),
            b'\r' | b';' if digits > 0 => {
                self.check_size()?;
                return match byte {
                    b'\r' => Ok(State::SizeLf),
                    _ => self.extension_byte(byte),
                };
            }
            _ => return Err(Reject::ChunkSize),
        };
        // Also zeros in front count: they serve to overflow some parsers and not others.
        if digits == 16 {
            return Err(Reject::ChunkSize);
        }
        // The size of the chunk before was counted down to zero.
        self.size = (self.size << 4) | u64::from(digit);
        Ok(State::Size { digits: digits + 1 })
    }

    /// Refuses a body before the data that would be too much is read.
    fn check_size(&self) -> Result<(), Reject> {
        let max = self.limits.max_body_size.unwrap_or(MAX_LENGTH);
        match self.decoded.checked_add(self.size) {
            Some(total) if total <= max => Ok(()),
            _ => Err(Reject::BodyTooLarge),
        }
    }

    fn extension_byte(&mut self, byte: u8) -> Result<State, Reject> {
        self.extensions += 1;
        if byte == b'\n' {
            Err(Reject::BareLf)
        } else if is_control(byte) {
            Err(Reject::ChunkExtension)
        } else if self.extensions > self.limits.max_chunk_extensions {
            Err(Reject::ChunkExtensionsTooLong)
        } else {
            Ok(State::Extension)
        }
    }

    /// Trailers get the same scrutiny as the fields of a head, although they are thrown away: what is
    /// behind the last chunk must not be read as the end by one and as a field by another.
    fn trailer_byte(&mut self, byte: u8) -> Result<State, Reject> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > self.limits.max_header_size {
            return Err(Reject::TrailersTooLarge);
        }
        match (self.state, byte) {
            (State::TrailerStart, b'\r') => Ok(State::EndLf),
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::EndLf, b'\n') => Ok(State::Done),
            (_, b'\n') => Err(Reject::BareLf),
            (State::TrailerStart, b' ' | b'\t') => Err(Reject::LineFolding),
            (State::TrailerStart, _) if is_token(byte) => {
                self.trailers += 1;
                if self.trailers > self.limits.max_fields {
                    return Err(Reject::TrailersTooLarge);
                }
                self.trailer_name = Name::default();
                self.trailer_name.push(byte);
                Ok(State::TrailerName)
            }
            (State::TrailerName, _) if is_token(byte) => {
                self.trailer_name.push(byte);
                Ok(State::TrailerName)
            }
            (State::TrailerName, b':') if self.trailer_name.frames() => Err(Reject::FramingUnderscore),
            (State::TrailerValue, _) if is_control(byte) => Err(Reject::FieldValue),
            (State::TrailerName, b':') | (State::TrailerValue, _) => Ok(State::TrailerValue),
            _ => Err(Reject::FieldName),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(input: &[u8], limits: &Limits) -> Result<(Vec<u8>, usize, bool), Reject> {
        let mut decoder = ChunkedDecoder::new(limits);
        let mut out = Vec::new();
        let consumed = decoder.decode(input, &mut out)?;
        assert_eq!(decoder.decoded(), out.len() as u64);
        Ok((out, consumed, decoder.is_done()))
    }

    #[track_caller]
    fn refused(input: &str) -> Reject {
        decode(input.as_bytes(), &Limits::default()).expect_err(input)
    }

    #[test]
    fn a_trailer_that_looks_like_framing_is_refused() {
        for name in ["Content_Length", "transfer_encoding", "TRANSFER_ENCODING"] {
            assert_eq!(refused(&format!("0\r\n{name}: 1\r\n\r\n")), Reject::FramingUnderscore);
        }
        for name in ["Content_Lengths", "Content_Lengt", "transfer_encodings", "X_Content_Length"] {
            let body = format!("0\r\n{name}: 1\r\n\r\n");
            assert!(decode(body.as_bytes(), &Limits::default()).unwrap().2, "{name}");
        }
    }

    #[test]
    fn data_is_joined_and_the_next_message_left_alone() {
        for (input, expected) in [
            ("0\r\n\r\n", ""),
            ("000\r\n\r\n", ""),
            ("3\r\nabc\r\n0\r\n\r\n", "abc"),
            ("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde"),
            ("0000000000000003\r\nabc\r\n0\r\n\r\n", "abc"),
            ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"),
            ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
            ("1;a=b;c=\"d e\"\r\nx\r\n0;last\r\n\r\n", "x"),
            ("1\r\nx\r\n0\r\nA: b\r\nC:\r\nD: \u{e9}\t\r\n\r\n", "x"),
        ] {
            let (out, consumed, done) = decode(format!("{input}GET /").as_bytes(), &Limits::default()).expect(input);
            assert_eq!(out, expected.as_bytes(), "{input}");
            assert_eq!((consumed, done), (input.len(), true), "{input}");
        }
    }

    #[test]
    fn what_is_not_plainly_a_chunk_is_refused() {
        for (input, reject) in [
            ("\r\n", Reject::ChunkSize),
            (";a\r\n", Reject::ChunkSize),
            ("0x1\r\n", Reject::ChunkSize),
            ("+1\r\n", Reject::ChunkSize),
            ("-1\r\n", Reject::ChunkSize),
            (" 1\r\n", Reject::ChunkSize),
            ("1 \r\n", Reject::ChunkSize),
            ("1 ;a\r\n", Reject::ChunkSize),
            ("1_0\r\n", Reject::ChunkSize),
            ("g\r\n", Reject::ChunkSize),
            ("00000000000000001\r\n", Reject::ChunkSize),
            ("ffffffffffffffff\r\n", Reject::BodyTooLarge),
            ("8000000000000000\r\n", Reject::BodyTooLarge),
            ("1\n", Reject::BareLf),
            ("1\rx", Reject::BareCr),
            ("1;a\nb\r\n", Reject::BareLf),
            ("1;a\0\r\n", Reject::ChunkExtension),
            ("1;a\rb\r\n", Reject::BareCr),
            ("1\r\nab\r\n", Reject::ChunkEnd),
            ("1\r\na\n", Reject::ChunkEnd),
            ("1\r\na\rb", Reject::ChunkEnd),
            ("0\r\n\n", Reject::BareLf),
            ("0\r\n\rx", Reject::BareCr),
            ("0\r\n a: b\r\n\r\n", Reject::LineFolding),
            ("0\r\na: b\r\n c\r\n\r\n", Reject::LineFolding),
            ("0\r\n: b\r\n\r\n", Reject::FieldName),
            ("0\r\na : b\r\n\r\n", Reject::FieldName),
            ("0\r\na\r\n\r\n", Reject::FieldName),
            ("0\r\na\n", Reject::BareLf),
            ("0\r\na: b\n", Reject::BareLf),
            ("0\r\na: b\rc", Reject::BareCr),
            ("0\r\na: \0\r\n\r\n", Reject::FieldValue),
        ] {
            assert_eq!(refused(input), reject, "{input:?}");
        }
    }

    #[test]
    fn a_body_is_refused_before_the_data_that_is_too_much() {
        let limits = Limits { max_body_size: Some(5), ..Limits::default() };
        let five = decode(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", &limits);
        assert_eq!(five, Ok((b"abcde".to_vec(), 20, true)));
        assert_eq!(decode(b"3\r\nabc\r\n3\r", &limits), Err(Reject::BodyTooLarge));
        assert_eq!(decode(b"6;", &limits), Err(Reject::BodyTooLarge));
    }

    #[test]
    fn extensions_are_limited_over_the_whole_body() {
        let limits = Limits { max_chunk_extensions: 6, ..Limits::default() };
        let body = b"1;ab\r\nx\r\n1;cd\r\nx\r\n0\r\n\r\n";
        assert_eq!(decode(body, &limits), Ok((b"xx".to_vec(), body.len(), true)));
        let body = b"1;ab\r\nx\r\n1;cd\r\nx\r\n0;\r\n\r\n";
        assert_eq!(decode(body, &limits), Err(Reject::ChunkExtensionsTooLong));
    }

    #[test]
    fn trailers_are_limited_in_number_and_length() {
        let limits = Limits { max_fields: 2, max_header_size: 12, ..Limits::default() };
        let body = b"0\r\na:1\r\nb:2\r\n\r\n";
        assert_eq!(decode(body, &limits), Ok((Vec::new(), body.len(), true)));
        for body in ["0\r\na:\r\nb:\r\nc", "0\r\na:123456789\r\n"] {
            let expected = Err(Reject::TrailersTooLarge);
            assert_eq!(decode(body.as_bytes(), &limits), expected, "{body}");
            let prefix = &body.as_bytes()[..body.len() - 1];
            assert!(decode(prefix, &limits).is_ok(), "{body}");
        }
    }

    #[test]
    fn a_chunk_header_is_the_size_in_hexadecimal() {
        for (len, line) in
            [(0, "0\r\n"), (1, "1\r\n"), (255, "ff\r\n"), (4096, "1000\r\n"), (usize::MAX, "ffffffffffffffff\r\n")]
        {
            assert_eq!(chunk_header(len).as_bytes(), line.as_bytes());
        }
    }

    #[test]
    fn an_empty_chunk_is_not_written() {
        let mut out = Vec::new();
        write_chunk(&mut out, b"");
        assert!(out.is_empty());
        write_chunk(&mut out, b"hello world, hello");
        assert_eq!(out, b"12\r\nhello world, hello\r\n");
    }
}
