//! `PitchforkRs::Hijack`: the `rack.hijack` of a request.

use std::sync::Arc;

use magnus::value::Opaque;
use magnus::{DataTypeFunctions, Error, RHash, RModule, Ruby, TypedData, Value, gc, method, prelude::*};

use crate::rack::hijack::Claim;

/// Takes the connection of a request when called.
#[derive(TypedData)]
#[magnus(class = "PitchforkRs::Hijack", free_immediately, size, mark)]
pub struct Hijack {
    claim: Arc<Claim>,
    env: Opaque<RHash>,
}

impl DataTypeFunctions for Hijack {
    fn mark(&self, marker: &gc::Marker) {
        marker.mark(self.env);
    }
}

impl Hijack {
    /// For the request with this environment.
    pub fn new(claim: Arc<Claim>, env: RHash) -> Self {
        Self { claim, env: env.into() }
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
    Ok(())
}
