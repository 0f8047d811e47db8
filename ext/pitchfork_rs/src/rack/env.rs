//! The Rack environment of a request.

use std::net::IpAddr;

use magnus::{Error, RHash, Ruby, Value};
use pitchfork_core::http::{EnvScratch, Form, Framing, Head, Version};

use super::keys;
use crate::vm::hash::Filling;
use crate::vm::string;

/// What an environment is made from.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// The parsed head.
    pub head: &'r Head,
    /// The buffer that it was parsed from.
    pub bytes: &'r [u8],
    /// The peer's address; `None` for a Unix socket.
    pub peer: Option<IpAddr>,
    /// The body's length in bytes, where it is known.
    pub length: Option<u64>,
}

/// Fills a copy of `template`, which holds what is the same for each request.
///
/// `asterisk` says whether this Rack wants `*` as the `PATH_INFO` of `OPTIONS *`; older ones want none.
pub fn build(
    ruby: &Ruby,
    template: RHash,
    request: Request<'_>,
    input: Value,
    asterisk: bool,
    scratch: &mut EnvScratch,
) -> Result<RHash, Error> {
    let Request { head, bytes, .. } = request;
    let mut env = Filling::copy_of(template)?;
    let method = head.method(bytes);
    if method == "GET" {
        env.set(ruby.get_inner(&keys::REQUEST_METHOD), ruby.get_inner(&keys::GET))?;
    } else {
        env.set(ruby.get_inner(&keys::REQUEST_METHOD), string::rack(ruby, method.as_bytes()))?;
    }
    set_target(ruby, &mut env, request, asterisk)?;
    let version = ruby.get_inner(match head.version() {
        Version::Http10 => &keys::HTTP_1_0,
        Version::Http11 => &keys::HTTP_1_1,
    });
    env.set(ruby.get_inner(&keys::SERVER_PROTOCOL), version)?;
    env.set(ruby.get_inner(&keys::HTTP_VERSION), version)?;

    // The application gets the decoded body and its length; the coding is gone.
    let decoded = head.framing() == Framing::Chunked && request.length.is_some();
    let mut https = false;
    let mut failed = None;
    head.for_each_env_field(bytes, scratch, |_, key, value| {
        https |= (key == b"HTTP_X_FORWARDED_PROTO" && first_element(value).eq_ignore_ascii_case(b"https"))
            || (key == b"HTTP_X_FORWARDED_SSL" && value.eq_ignore_ascii_case(b"on"));
        if decoded && key == b"HTTP_TRANSFER_ENCODING" {
            return;
        }
        if let Err(error) = env.set(keys::field(ruby, key), string::rack(ruby, value)) {
            failed = Some(error);
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }

    set_server(ruby, &mut env, request, https)?;
    set_body(ruby, &mut env, request, input)?;
    let peer = match request.peer {
        Some(peer) => string::rack(ruby, peer.to_string().as_bytes()),
        None => ruby.get_inner(&keys::LOOPBACK),
    };
    env.set(ruby.get_inner(&keys::REMOTE_ADDR), peer)?;
    env.finish()
}

fn set_target(ruby: &Ruby, env: &mut Filling, request: Request<'_>, asterisk: bool) -> Result<(), Error> {
    let Request { head, bytes, .. } = request;
    let path = string::rack(ruby, head.path(bytes).as_bytes());
    if head.form() != Form::Asterisk || asterisk {
        env.set(ruby.get_inner(&keys::PATH_INFO), path)?;
    }
    env.set(ruby.get_inner(&keys::REQUEST_PATH), path)?;
    let uri = head.request_uri(bytes);
    let uri = if uri == head.path(bytes) { path } else { string::rack(ruby, uri.as_bytes()) };
    env.set(ruby.get_inner(&keys::REQUEST_URI), uri)?;
    let query = match head.query(bytes) {
        "" => ruby.get_inner(&keys::EMPTY),
        query => string::rack(ruby, query.as_bytes()),
    };
    env.set(ruby.get_inner(&keys::QUERY_STRING), query)
}

fn set_server(ruby: &Ruby, env: &mut Filling, request: Request<'_>, https: bool) -> Result<(), Error> {
    if https {
        env.set(ruby.get_inner(&keys::URL_SCHEME), ruby.get_inner(&keys::HTTPS))?;
    }
    let authority = request.head.authority(request.bytes);
    env.set(ruby.get_inner(&keys::SERVER_NAME), string::rack(ruby, authority.name.as_bytes()))?;
    let port = match authority.port {
        Some(port) if !port.is_empty() => string::rack(ruby, port.as_bytes()),
        _ if https => ruby.get_inner(&keys::PORT_443),
        _ => ruby.get_inner(&keys::PORT_80),
    };
    env.set(ruby.get_inner(&keys::SERVER_PORT), port)
}

fn set_body(ruby: &Ruby, env: &mut Filling, request: Request<'_>, input: Value) -> Result<(), Error> {
    env.set(ruby.get_inner(&keys::INPUT), input)?;
    if let Some(length) = request.length {
        env.set(ruby.get_inner(&keys::CONTENT_LENGTH), string::rack(ruby, length.to_string().as_bytes()))?;
    }
    if let Some(kind) = request.head.content_type(request.bytes) {
        env.set(ruby.get_inner(&keys::CONTENT_TYPE), string::rack(ruby, &kind))?;
    }
    Ok(())
}

/// The first element of a list, which is the one that the proxy nearest to the client added.
fn first_element(value: &[u8]) -> &[u8] {
    value.split(|&byte| byte == b',').next().unwrap_or_default().trim_ascii()
}
