//! Classes of bytes, and a search that stays fast on long lines.

/// `tchar` of RFC 9110, section 5.6.2.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[allow(clippy::cast_possible_truncation)] // bounded by the loop
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
            );
        byte += 1;
    }
    table
};

/// Whether the byte may stand in a token: a method, a field name, a coding.
pub(super) const fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether the byte may not stand in a field value: every control byte but TAB.
///
/// Bytes from 0x80 are `obs-text` (RFC 9110, section 5.5) and pass.
pub(super) const fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// Whether all of `bytes` is one token, which is never empty.
pub(super) fn is_token_text(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token(byte))
}

/// `bytes` without the optional white space (RFC 9110, section 5.6.3) at both ends.
///
/// Not `trim_ascii`, which would also take line breaks and form feeds away, that is, forgive them.
pub(super) fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// The position of the first byte that `wanted` accepts.
///
/// `Iterator::position` leaves at the first hit and so is compiled to one byte at a time; looking at
/// sixteen bytes without a branch lets the compiler use vector instructions.
pub(super) fn find(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> Option<usize> {
    const LANES: usize = 16;
    let mut at = 0;
    for lane in bytes.chunks_exact(LANES) {
        if lane.iter().fold(false, |hit, &byte| hit | wanted(byte)) {
            break;
        }
        at += LANES;
    }
    bytes[at..].iter().position(|&byte| wanted(byte)).map(|offset| at + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_hit_wherever_it_lies_in_a_lane() {
        for len in 0..70 {
            assert_eq!(find(&vec![b'a'; len], is_control), None);
            for hit in 0..len {
                let mut bytes = vec![b'a'; len];
                bytes[hit..].fill(b'\r');
                assert_eq!(find(&bytes, is_control), Some(hit), "{hit} of {len}");
            }
        }
    }

    #[test]
    fn a_tab_and_bytes_above_ascii_are_no_controls() {
        let controls: Vec<u8> = (0..=255).filter(|&byte| is_control(byte)).collect();
        let expected: Vec<u8> = (0..32).filter(|&byte| byte != 9).chain([127]).collect();
        assert_eq!(controls, expected);
    }

    #[test]
    fn a_token_has_no_separators() {
        for byte in b"()<>@,;:\\\"/[]?={} \t\x7f\x80\0" {
            assert!(!is_token(*byte), "{byte}");
        }
        assert!(is_token_text(b"M-SEARCH"));
        assert!(is_token_text(b"!#$%&'*+-.^_`|~09azAZ"));
        assert!(!is_token_text(b""));
    }

    #[test]
    fn only_spaces_and_tabs_are_trimmed() {
        assert_eq!(trim_ows(b" \ta b\t "), b"a b");
        assert_eq!(trim_ows(b" \t "), b"");
        assert_eq!(trim_ows(b"\x0ba\r"), b"\x0ba\r");
    }
}
