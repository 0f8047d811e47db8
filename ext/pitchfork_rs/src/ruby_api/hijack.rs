//! `PitchforkRs::Hijack`: the `rack.hijack` of a request, and its `pitchfork.socket`.

use std::cell::Cell;
use std::sync::Arc;

use magnus::value::Opaque;
use magnus::{DataTypeFunctions, Error, RHash, RModule, Ruby, TypedData, Value, gc, method, prelude::*};

use crate::rack::call;
use crate::rack::hijack::Claim;

/// Takes the connection of a request when called. Few ever ask for its socket otherwise, so that is built for those who
/// do, and forwarded to: one object does for both.
#[derive(TypedData)]
#[magnus(class = "PitchforkRs::Hijack", free_immediately, size, mark)]
pub struct Hijack {
    claim: Arc<Claim>,
    env: Opaque<RHash>,
    socket: Cell<Option<Opaque<Value>>>,
}

impl DataTypeFunctions for Hijack {
    fn mark(&self, marker: &gc::Marker) {
        marker.mark(self.env);
        if let Some(socket) = self.socket.get() {
            marker.mark(socket);
        }
    }
}

impl Hijack {
    /// For the request with this environment.
    pub fn new(claim: Arc<Claim>, env: RHash) -> Self {
        Self { claim, env: env.into(), socket: Cell::new(None) }
    }

    /// The request is over, and with it the socket, unless the application has taken the connection.
    pub fn end(&self, ruby: &Ruby) -> Result<(), Error> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        match ruby.get_inner(socket).funcall::<_, _, Value>("close", ()) {
            // The application has left something unsent, or closed the descriptor behind Ruby's back.
            Err(error) if call::is_application_error(ruby, &error) => Ok(()),
            other => other.map(drop),
        }
    }

    /// `to_io`: the socket of the connection, as `TCPSocket` or `UNIXSocket`, to be used.
    fn to_io(ruby: &Ruby, rb_self: &Self) -> Result<Value, Error> {
        rb_self.claim.share();
        Self::look(ruby, rb_self)
    }

    /// `look`: the same socket, to find out what it can do.
    fn look(ruby: &Ruby, rb_self: &Self) -> Result<Value, Error> {
        if let Some(taken) = ruby.get_inner(rb_self.env).get("rack.hijack_io") {
            return Ok(taken);
        }
        if let Some(socket) = rb_self.socket.get() {
            return Ok(ruby.get_inner(socket));
        }
        let socket = rb_self.claim.look(ruby)?;
        rb_self.socket.set(Some(socket.into()));
        Ok(socket)
    }

    /// `call`: the socket, which is the application's from now on; also found as `rack.hijack_io`.
    fn call(ruby: &Ruby, rb_self: &Self) -> Result<Value, Error> {
        let env = ruby.get_inner(rb_self.env);
        if let Some(io) = env.get("rack.hijack_io") {
            return Ok(io);
        }
        let io = rb_self.claim.take(ruby)?;
        env.aset("rack.hijack_io", io)?;
        Ok(io)
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Hijack", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("call", method!(Hijack::call, 0))?;
    class.define_private_method("look", method!(Hijack::look, 0))?;
    class.define_method("to_io", method!(Hijack::to_io, 0))?;
    Ok(())
}
