//! The settings that the configuration hands over: plain data, read once.

use magnus::{Error, RHash, Ruby, TryConvert, Value, value::ReprValue};
use pitchfork_core::children::Millis;
use pitchfork_core::http::Limits;

use crate::rack::settings::Settings;

/// One setting.
pub fn fetch<T: TryConvert>(ruby: &Ruby, settings: RHash, key: &str) -> Result<T, Error> {
    settings.fetch(ruby.to_symbol(key))
}

/// A count or a size; one that is too large for its type means the same as the largest.
pub fn count<T: TryFrom<u64>>(ruby: &Ruby, settings: RHash, key: &str, largest: T) -> Result<T, Error> {
    Ok(optional_count(ruby, settings, key)?.and_then(|count| T::try_from(count).ok()).unwrap_or(largest))
}

/// A count or a size, or nil.
pub fn optional_count(ruby: &Ruby, settings: RHash, key: &str) -> Result<Option<u64>, Error> {
    let count: Option<Value> = fetch(ruby, settings, key)?;
    count.map(|count| count.funcall("clamp", (0, i64::MAX))).transpose()
}

/// A time that is given in seconds, whole or not. Nobody waits for more than thirty years.
pub fn millis(ruby: &Ruby, settings: RHash, key: &str) -> Result<Millis, Error> {
    let seconds: Value = fetch(ruby, settings, key)?;
    let seconds: Value = seconds.funcall("clamp", (0, 1_000_000_000))?;
    let millis: Value = seconds.funcall("*", (1_000,))?;
    millis.funcall("to_i", ())
}

/// The settings of the HTTP layer.
pub fn rack(ruby: &Ruby, settings: RHash) -> Result<Settings, Error> {
    let limits = Limits {
        max_header_size: count(ruby, settings, "client_max_header_size", usize::MAX)?,
        max_body_size: optional_count(ruby, settings, "client_max_body_size")?,
        ..Limits::default()
    };
    Ok(Settings {
        limits,
        header_timeout: millis(ruby, settings, "client_header_timeout")?,
        keepalive_timeout: millis(ruby, settings, "keepalive_timeout")?,
        keepalive_requests: count(ruby, settings, "keepalive_requests", u32::MAX)?,
        body_timeout: millis(ruby, settings, "client_body_timeout")?,
        min_rate: count(ruby, settings, "client_min_rate", u64::MAX)?,
        write_timeout: millis(ruby, settings, "write_timeout")?,
        response_buffer: count(ruby, settings, "response_buffer_size", usize::MAX)?,
        body_memory: count(ruby, settings, "client_body_buffer_size", u64::MAX)?,
        rewindable: fetch(ruby, settings, "rewindable_input")?,
        early_hints: fetch(ruby, settings, "early_hints")?,
        check_client: fetch(ruby, settings, "check_client_connection")?,
    })
}
