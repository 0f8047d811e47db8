//! The `Date` field's value.

use std::io::Write;
use std::time::{Duration, SystemTime};

use httpdate::HttpDate;

/// The length of an IMF-fixdate (RFC 9110, section 5.6.7).
pub const DATE_LENGTH: usize = 29;

/// The last second that fits in it; httpdate panics beyond.
const LAST_SECOND: u64 = 253_402_300_799;

/// Formats each second once.
#[derive(Debug, Clone)]
pub struct DateCache {
    second: u64,
    text: [u8; DATE_LENGTH],
}

impl Default for DateCache {
    fn default() -> Self {
        Self { second: 0, text: format(0) }
    }
}

impl DateCache {
    /// The date, so many seconds after the epoch.
    pub fn get(&mut self, unix_seconds: u64) -> &[u8; DATE_LENGTH] {
        if self.second != unix_seconds {
            self.second = unix_seconds;
            self.text = format(unix_seconds);
        }
        &self.text
    }
}

fn format(unix_seconds: u64) -> [u8; DATE_LENGTH] {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(unix_seconds.min(LAST_SECOND));
    let mut text = [b' '; DATE_LENGTH];
    let written = write!(&mut text[..], "{}", HttpDate::from(time));
    debug_assert!(written.is_ok(), "a date has always the same length");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_an_imf_fixdate() {
        let mut cache = DateCache::default();
        for (seconds, expected) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_778, "Sun, 06 Nov 1994 08:49:38 GMT"),
            (784_111_778, "Sun, 06 Nov 1994 08:49:38 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] {
            assert_eq!(cache.get(seconds), expected.as_bytes());
        }
    }

    #[test]
    fn the_epoch_is_a_date_too() {
        let first = *DateCache::default().get(0);
        assert_eq!(&first, b"Thu, 01 Jan 1970 00:00:00 GMT");
    }

    #[test]
    fn a_clock_gone_mad_does_not_panic() {
        let last = b"Fri, 31 Dec 9999 23:59:59 GMT";
        assert_eq!(DateCache::default().get(LAST_SECOND), last);
        assert_eq!(DateCache::default().get(u64::MAX), last);
    }
}
