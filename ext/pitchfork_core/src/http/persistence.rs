//! Whether a connection goes on after a response (RFC 9112, section 9.3).

use super::bytes::{is_token_text, trim_ows};
use super::head::Version;

/// What the `Connection` fields of a message ask for, gathered in their order.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ConnectionOptions {
    close: bool,
    keep_alive: bool,
}

impl ConnectionOptions {
    /// Notes one field. An option that is no token is one that another reader may take for `close`, and so does this
    /// one; options that are not known here mean nothing.
    pub(super) fn field(&mut self, value: &[u8]) {
        let options = value.split(|&byte| byte == b',').map(trim_ows);
        for option in options.filter(|option| !option.is_empty()) {
            if option.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else {
                self.close |= option.eq_ignore_ascii_case(b"close") || !is_token_text(option);
            }
        }
    }

    /// Whether whoever sent a message of this version wants the connection to go on.
    pub(super) fn persists(self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persists(fields: &[&str], version: Version) -> bool {
        let mut options = ConnectionOptions::default();
        for field in fields {
            options.field(field.as_bytes());
        }
        options.persists(version)
    }

    #[test]
    fn the_version_decides_unless_the_client_does() {
        for (fields, http10, http11) in [
            (&[][..], false, true),
            (&[""], false, true),
            (&["close"], false, false),
            (&["CLOSE"], false, false),
            (&["keep-alive"], true, true),
            (&["Keep-Alive"], true, true),
            (&["keep-alive, close"], false, false),
            (&["close, keep-alive"], false, false),
            (&["keep-alive", "close"], false, false),
            (&["upgrade", "x , \tclose\t,y"], false, false),
            (&["x,keep-alive ,,"], true, true),
            (&["te, upgrade"], false, true),
            (&["closed", "xclose"], false, true),
            (&["\"close\""], false, false),
            (&["keep-alive", "close;x"], false, false),
            (&["close x"], false, false),
        ] {
            assert_eq!(persists(fields, Version::Http10), http10, "1.0 {fields:?}");
            assert_eq!(persists(fields, Version::Http11), http11, "1.1 {fields:?}");
        }
    }
}
