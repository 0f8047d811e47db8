//! Why a request is refused.

use thiserror::Error;

/// The reason why a request is refused, and so why its connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs)] // each variant's message is its documentation
pub enum Reject {
    // Lines
    #[error("a line ends in LF without CR")]
    BareLf,
    #[error("CR without LF")]
    BareCr,
    #[error("more than one empty line before the request line")]
    LeadingEmptyLines,
    #[error("the head is malformed")]
    MalformedHead,

    // Request line
    #[error("the method is no token")]
    Method,
    #[error("the method is longer than any this server passes on")]
    MethodTooLong,
    #[error("the request target is too long")]
    TargetTooLong,
    #[error("a control byte in the request target")]
    TargetByte,
    #[error("the request target is not UTF-8")]
    TargetEncoding,
    #[error("the request target is neither a path, an http URI nor the asterisk of OPTIONS")]
    Target,
    #[error("tunnels (CONNECT, or a target that is an authority) are not offered")]
    Tunnel,
    #[error("the request line has no HTTP version")]
    VersionMissing,
    #[error("the request line does not end in a well-formed HTTP version")]
    VersionMalformed,
    #[error("an HTTP version other than 1.0 and 1.1")]
    VersionUnsupported,

    // Fields
    #[error("a field name is no token, or is not followed by a colon at once")]
    FieldName,
    #[error("a control byte in a field line")]
    FieldValue,
    #[error("a line begins with white space (obsolete line folding)")]
    LineFolding,
    #[error("Content-Length or Transfer-Encoding spelled with an underscore")]
    FramingUnderscore,
    #[error("too many fields in the head")]
    TooManyFields,
    #[error("the head is too long")]
    HeadTooLong,
    #[error("no Host field in an HTTP/1.1 request")]
    HostMissing,
    #[error("more than one Host field")]
    HostRepeated,
    #[error("Host, or the authority of the target, is not a valid authority")]
    Host,
    #[error("an expectation other than 100-continue")]
    Expectation,

    // Framing
    #[error("both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
    #[error("more than one Content-Length field")]
    LengthRepeated,
    #[error("Content-Length is not a decimal number below 2^63")]
    Length,
    #[error("Transfer-Encoding in an HTTP/1.0 request")]
    CodingVersion,
    #[error("Transfer-Encoding is not a list of codings")]
    Coding,
    #[error("the chunked coding is applied twice, or is not the last one")]
    ChunkedNotLast,
    #[error("a transfer coding other than chunked")]
    CodingUnsupported,
    #[error("the body is too large")]
    BodyTooLarge,

    // Chunks
    #[error("a chunk size is not a hexadecimal number of at most 16 digits")]
    ChunkSize,
    #[error("a control byte in a chunk extension")]
    ChunkExtension,
    #[error("the chunk extensions are too long")]
    ChunkExtensionsTooLong,
    #[error("a chunk's data is not followed by CRLF")]
    ChunkEnd,
    #[error("too many trailer fields, or too long ones")]
    TrailersTooLarge,
}

impl Reject {
    /// The status of the response that says so.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::BodyTooLarge => 413,
            Self::TargetTooLong => 414,
            Self::Expectation => 417,
            Self::TooManyFields | Self::HeadTooLong | Self::TrailersTooLarge => 431,
            // A method too long to be known: RFC 9112, section 3.
            Self::MethodTooLong | Self::Tunnel | Self::CodingUnsupported => 501,
            Self::VersionUnsupported => 505,
            _ => 400,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_the_status_its_rfc_section_names() {
        for (reject, status) in [
            (Reject::BareLf, 400),
            (Reject::LengthAndCoding, 400),
            (Reject::ChunkExtensionsTooLong, 400),
            (Reject::BodyTooLarge, 413),
            (Reject::TargetTooLong, 414),
            (Reject::Expectation, 417),
            (Reject::HeadTooLong, 431),
            (Reject::TooManyFields, 431),
            (Reject::TrailersTooLarge, 431),
            (Reject::Tunnel, 501),
            (Reject::MethodTooLong, 501),
            (Reject::CodingUnsupported, 501),
            (Reject::VersionUnsupported, 505),
        ] {
            assert_eq!(reject.status(), status, "{reject}");
        }
    }

    #[test]
    fn the_text_is_one_line() {
        let text = Reject::Target.to_string();
        assert!(!text.is_empty() && !text.contains('\n'));
    }
}
