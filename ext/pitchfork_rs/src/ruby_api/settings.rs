//! The settings that the configuration hands over: plain data, read once.

use magnus::{Error, RHash, Ruby, TryConvert, Value, value::ReprValue};
use pitchfork_core::children::Millis;
use pitchfork_core::http::Limits;

use crate::rack::settings::Settings;

/// One setting.
pub fn fetch<T: TryConvert>(ruby: &Ruby, settings: RHash, key: &str) -> Result<T, Error> {
    settings.fetch(ruby.to_symbol(key))
}

/// A time that is given in seconds, whole or not.
pub fn millis(ruby: &Ruby, settings: RHash, key: &str) -> Result<Millis, Error> {
    let seconds: Value = fetch(ruby, settings, key)?;
    let millis: Value = seconds.funcall("*", (1_000,))?;
    millis.funcall("to_i", ())
}

/// The settings of the HTTP layer.
pub fn rack(ruby: &Ruby, settings: RHash) -> Result<Settings, Error> {
    let limits = Limits {
        max_header_size: fetch(ruby, settings, "client_max_header_size")?,
        max_body_size: fetch(ruby, settings, "client_max_body_size")?,
        ..Limits::default()
    };
    Ok(Settings {
        limits,
        header_timeout: millis(ruby, settings, "client_header_timeout")?,
        body_timeout: millis(ruby, settings, "client_body_timeout")?,
        min_rate: fetch(ruby, settings, "client_min_rate")?,
        write_timeout: millis(ruby, settings, "write_timeout")?,
        body_memory: fetch(ruby, settings, "client_body_buffer_size")?,
        rewindable: fetch(ruby, settings, "rewindable_input")?,
        early_hints: fetch(ruby, settings, "early_hints")?,
        check_client: fetch(ruby, settings, "check_client_connection")?,
    })
}
