//! A range of a buffer that somebody else owns.

/// Where something lies in the connection's buffer.
///
/// A borrowed slice could not live in a struct beside the buffer it points into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Where `part`, a subslice of `whole`, lies in it.
    pub(super) fn of(part: &[u8], whole: &[u8]) -> Self {
        let start = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
        Self::new(start, start.saturating_add(part.len()))
    }

    /// The same range in a buffer in which this span's own buffer begins at `offset`.
    pub(super) const fn shifted(self, offset: usize) -> Self {
        Self::new(self.start + offset, self.end + offset)
    }

    /// The bytes. Empty when the buffer is not the one that was parsed: never a panic.
    pub(super) fn bytes(self, buf: &[u8]) -> &[u8] {
        buf.get(self.start..self.end).unwrap_or_default()
    }

    /// The text, of a part that was found to be UTF-8 when it was parsed.
    pub(super) fn text(self, buf: &[u8]) -> &str {
        str::from_utf8(self.bytes(buf)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subslice_is_found_again() {
        let whole = b"one two three";
        let span = Span::of(&whole[4..7], whole);
        assert_eq!(span, Span::new(4, 7));
        assert_eq!(span.text(whole), "two");
        assert_eq!(span.shifted(1).bytes(whole), b"wo ");
    }

    #[test]
    fn another_buffer_yields_nothing() {
        assert_eq!(Span::new(4, 7).bytes(b"one"), b"");
        assert_eq!(Span::new(0, 1).text(b"\xff"), "");
    }
}
