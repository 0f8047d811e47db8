//! How much of a request is read before it is refused.

/// Upper bounds of the parts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head: request line, fields and the empty lines around them. Of a chunked body's
    /// trailer section too.
    pub max_header_size: usize,
    /// Fields in a head, and fields in a trailer section.
    pub max_fields: usize,
    /// Bytes of the request target as it was sent.
    pub max_target: usize,
    /// Bytes of the method.
    pub max_method: usize,
    /// Bytes of all chunk extensions of one body together. They are ignored, so a client that sends
    /// many of them only wants to keep the server busy.
    pub max_chunk_extensions: usize,
    /// Bytes of a decoded body; no limit if absent.
    pub max_body_size: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_header_size: 112 * 1024,
            max_fields: 128,
            max_target: 16 * 1024,
            max_method: 32,
            max_chunk_extensions: 4096,
            max_body_size: None,
        }
    }
}
