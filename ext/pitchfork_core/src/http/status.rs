//! Status codes.

/// The reason phrase of a registered status code; empty for others, which RFC 9112, section 4, allows.
#[must_use]
pub const fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        104 => "Upload Resumption Supported",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        510 => "Not Extended",
        511 => "Network Authentication Required",
        _ => "",
    }
}

/// Whether a response with this status never has a body (RFC 9112, section 6.3).
#[must_use]
pub const fn bodyless(status: u16) -> bool {
    matches!(status, 100..=199 | 204 | 304)
}

/// Whether the status can stand in a status line at all: three digits.
#[must_use]
pub const fn is_valid(status: u16) -> bool {
    matches!(status, 100..=999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_codes_have_a_phrase_and_others_an_empty_one() {
        for (status, phrase) in [
            (200, "OK"),
            (404, "Not Found"),
            (413, "Content Too Large"),
            (422, "Unprocessable Content"),
            (511, "Network Authentication Required"),
            (299, ""),
            (306, ""),
            (0, ""),
        ] {
            assert_eq!(reason(status), phrase, "{status}");
        }
    }

    #[test]
    fn informational_no_content_and_not_modified_have_no_body() {
        let found: Vec<u16> = (0..1000).filter(|&status| bodyless(status)).collect();
        let expected: Vec<u16> = (100..200).chain([204, 304]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_status_has_three_digits() {
        let validity = [0, 99, 100, 999, 1000].map(is_valid);
        assert_eq!(validity, [false, false, true, true, false]);
    }
}
