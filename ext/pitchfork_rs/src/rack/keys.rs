//! The keys of a Rack environment, made once and found by their bytes.
//!
//! Fields that nearly every request carries have their `HTTP_` key here; others are interned as they come.

use magnus::value::Lazy;
use magnus::{RString, Ruby};

use crate::vm::string;

macro_rules! keys {
    ($($name:ident = $text:literal),* $(,)?) => {
        $(
            #[doc = concat!("`", $text, "`")]
            pub static $name: Lazy<RString> = Lazy::new(|ruby| ruby.str_new($text).to_interned_str());
        )*
    };
}

keys! {
    REQUEST_METHOD = "REQUEST_METHOD",
    PATH_INFO = "PATH_INFO",
    QUERY_STRING = "QUERY_STRING",
    REQUEST_URI = "REQUEST_URI",
    REQUEST_PATH = "REQUEST_PATH",
    SERVER_NAME = "SERVER_NAME",
    SERVER_PORT = "SERVER_PORT",
    SERVER_PROTOCOL = "SERVER_PROTOCOL",
    HTTP_VERSION = "HTTP_VERSION",
    REMOTE_ADDR = "REMOTE_ADDR",
    CONTENT_TYPE = "CONTENT_TYPE",
    CONTENT_LENGTH = "CONTENT_LENGTH",
    URL_SCHEME = "rack.url_scheme",
    INPUT = "rack.input",
    TEMPFILES = "rack.tempfiles",
    HIJACK = "rack.hijack",
    SOCKET = "pitchfork.socket",
    RESPONSE_FINISHED = "rack.response_finished",
    AFTER_REPLY = "rack.after_reply",
    REQUEST_ID = "HTTP_X_REQUEST_ID",
    GET = "GET",
    HTTP_1_0 = "HTTP/1.0",
    HTTP_1_1 = "HTTP/1.1",
    LOOPBACK = "127.0.0.1",
    HTTPS = "https",
    EMPTY = "",
    PORT_80 = "80",
    PORT_443 = "443",
}

macro_rules! fields {
    ($($text:literal),* $(,)?) => {
        static FIELDS: [(&[u8], Lazy<RString>); [$($text),*].len()] =
            [$(($text.as_bytes(), Lazy::new(|ruby| ruby.str_new($text).to_interned_str()))),*];
    };
}

// Sorted, for the binary search.
fields! {
    "HTTP_ACCEPT",
    "HTTP_ACCEPT_ENCODING",
    "HTTP_ACCEPT_LANGUAGE",
    "HTTP_AUTHORIZATION",
    "HTTP_CACHE_CONTROL",
    "HTTP_CONNECTION",
    "HTTP_COOKIE",
    "HTTP_FORWARDED",
    "HTTP_HOST",
    "HTTP_IF_MODIFIED_SINCE",
    "HTTP_IF_NONE_MATCH",
    "HTTP_ORIGIN",
    "HTTP_PRAGMA",
    "HTTP_REFERER",
    "HTTP_SEC_FETCH_DEST",
    "HTTP_SEC_FETCH_MODE",
    "HTTP_SEC_FETCH_SITE",
    "HTTP_SEC_FETCH_USER",
    "HTTP_UPGRADE_INSECURE_REQUESTS",
    "HTTP_USER_AGENT",
    "HTTP_VIA",
    "HTTP_X_CSRF_TOKEN",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PORT",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_REAL_IP",
    "HTTP_X_REQUESTED_WITH",
    "HTTP_X_REQUEST_ID",
}

/// The key of a request field, by its CGI name.
pub fn field(ruby: &Ruby, name: &[u8]) -> RString {
    match FIELDS.binary_search_by(|(known, _)| (*known).cmp(name)) {
        Ok(at) => ruby.get_inner(&FIELDS[at].1),
        Err(_) => string::rack(ruby, name).to_interned_str(),
    }
}
