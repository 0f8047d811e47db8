//! Where the body ends, and what it is.

use super::fields::{self, Field};
use super::{Limits, Outcome, Statuses, find, split};

/// How the end of a body is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// By its length.
    Length(u64),
    /// By a chunk of size 0.
    Chunked,
}

/// A body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Its bytes, the coding taken off.
    pub data: Vec<u8>,
    /// How many bytes it took on the wire.
    pub length: usize,
}

/// The largest length of anything: an offset in a file.
const LARGEST: u64 = (1 << 63) - 1;

/// Decides the framing from the fields.
pub fn framing(listed: &[Field], minor: u8, limits: &Limits, faults: &mut Statuses) -> Framing {
    let lengths = fields::values(listed, "content-length");
    let codings = fields::values(listed, "transfer-encoding");
    if !lengths.is_empty() && !codings.is_empty() {
        faults.insert(400);
    }
    if !codings.is_empty() {
        if minor == 0 {
            faults.insert(400);
        }
        transfer_codings(&codings, faults);
        return Framing::Chunked;
    }
    let Some(length) = lengths.first() else { return Framing::None };
    if lengths.len() > 1 || length.is_empty() || !length.iter().all(u8::is_ascii_digit) {
        faults.insert(400);
        return Framing::None;
    }
    let mut value: u64 = 0;
    for digit in length {
        match value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit - b'0'))) {
            Some(next) if next <= LARGEST => value = next,
            _ => {
                faults.insert(400);
                return Framing::None;
            }
        }
    }
    if limits.body.is_some_and(|limit| value > limit) {
        faults.insert(413);
    }
    Framing::Length(value)
}

fn transfer_codings(values: &[Vec<u8>], faults: &mut Statuses) {
    let codings: Vec<_> =
        split(&values.join(&b","[..]), b",").iter().map(|coding| fields::trim(coding).to_ascii_lowercase()).collect();
    if codings == [b"chunked"] {
        return;
    }
    let last_is_chunked = codings.last().is_some_and(|last| last == b"chunked");
    let times_chunked = codings.iter().filter(|coding| *coding == b"chunked").count();
    for coding in &codings {
        if !fields::is_token(coding) {
            faults.insert(400);
        } else if coding != b"chunked" {
            faults.insert(501);
        }
    }
    if times_chunked > 1 || (times_chunked == 1 && !last_is_chunked) {
        faults.insert(400);
    }
}

/// Reads a body from the beginning of `input`.
#[must_use]
pub fn body(framing: &Framing, input: &[u8], limits: &Limits) -> Outcome<Body> {
    match framing {
        Framing::None => Outcome::Done(Body { data: Vec::new(), length: 0 }),
        Framing::Length(length) if limits.body.is_some_and(|limit| *length > limit) => Outcome::Refused([413].into()),
        Framing::Length(length) => match usize::try_from(*length) {
            Ok(length) if length <= input.len() => Outcome::Done(Body { data: input[..length].to_vec(), length }),
            _ => Outcome::Incomplete,
        },
        Framing::Chunked => chunked(input, limits),
    }
}

fn refused<T>() -> Outcome<T> {
    Outcome::Refused([400].into())
}

fn chunked(input: &[u8], limits: &Limits) -> Outcome<Body> {
    let mut data = Vec::new();
    let mut at = 0;
    let mut extensions = 0;
    loop {
        let Some(end) = find(&input[at..], b"\r\n") else { return Outcome::Incomplete };
        let line = &input[at..at + end];
        at += end + 2;
        let digits = &line[..find(line, b";").unwrap_or(line.len())];
        let extension = &line[digits.len()..];
        extensions += extension.len();
        let mut faults = Statuses::new();
        if !(1..=16).contains(&digits.len())
            || !digits.iter().all(u8::is_ascii_hexdigit)
            || extension.iter().any(|&byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f)
            || extensions > limits.extensions
        {
            faults.insert(400);
        }
        // A line may be bad twice over: a size that is too much, and something that does not belong behind it.
        let hexadecimal = line.iter().take(17).take_while(|byte| byte.is_ascii_hexdigit());
        let size = hexadecimal
            .fold(0u128, |size, &digit| (size << 4) + u128::from(char::from(digit).to_digit(16).unwrap_or_default()));
        if data.len() as u128 + size > u128::from(limits.body.unwrap_or(LARGEST)) {
            faults.insert(413);
        }
        if !faults.is_empty() {
            return Outcome::Refused(faults);
        }
        if size == 0 {
            break;
        }
        let Some(size) = usize::try_from(size).ok().filter(|&size| size <= input.len() - at) else {
            return Outcome::Incomplete;
        };
        data.extend(&input[at..at + size]);
        at += size;
        let after = &input[at..];
        if !after.starts_with(b"\r\n") {
            return if b"\r\n".starts_with(after) { Outcome::Incomplete } else { refused() };
        }
        at += 2;
    }
    match trailers(&input[at..], limits) {
        Outcome::Done(length) => Outcome::Done(Body { data, length: at + length }),
        Outcome::Refused(statuses) => Outcome::Refused(statuses),
        Outcome::Incomplete => Outcome::Incomplete,
    }
}

fn trailers(input: &[u8], limits: &Limits) -> Outcome<usize> {
    let mut faults = Statuses::new();
    let mut at = 0;
    let mut count = 0;
    while let Some(end) = find(&input[at..], b"\r\n") {
        let line = &input[at..at + end];
        at += end + 2;
        if line.is_empty() {
            if at > limits.head {
                faults.insert(431);
            }
            return if faults.is_empty() { Outcome::Done(at) } else { Outcome::Refused(faults) };
        }
        count += 1;
        if count > limits.fields {
            faults.insert(431);
        }
        fields::field(line, &mut faults);
    }
    if input.len() > limits.head {
        faults.insert(431);
        // Something else may have been wrong before it was too long.
        fields::field(&input[at..], &mut faults);
    }
    if faults.is_empty() { Outcome::Incomplete } else { Outcome::Refused(faults) }
}
