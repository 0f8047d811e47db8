//! `PitchforkRs::RequestTimeout`: the `pitchfork.timeout` of each request.

use std::cell::Cell;

use magnus::typed_data::Obj;
use magnus::value::Opaque;
use magnus::{DataTypeFunctions, Error, RHash, RModule, Ruby, TryConvert, TypedData, Value, gc, method, prelude::*};

use crate::process::clockwork;

/// The most seconds that a request may be given at once: some thirty years, far from where the clock ends.
const MOST: u64 = 1_000_000_000;

/// The time that the request in hand has left, and its environment, for the hook that is called when there is none.
///
/// There is one for all requests of a worker, so it costs none of them anything. It always speaks of the request in hand.
#[derive(Default, TypedData)]
#[magnus(class = "PitchforkRs::RequestTimeout", free_immediately, size, mark)]
pub struct RequestTimeout {
    env: Cell<Option<Opaque<RHash>>>,
}

impl DataTypeFunctions for RequestTimeout {
    fn mark(&self, marker: &gc::Marker) {
        if let Some(env) = self.env.get() {
            marker.mark(env);
        }
    }
}

impl RequestTimeout {
    /// Notes the environment of the request in hand, or that there is none.
    pub fn set_env(&self, env: Option<RHash>) {
        self.env.set(env.map(Opaque::from));
    }

    /// `rack_env`: the environment of the request in hand, or nil.
    fn rack_env(ruby: &Ruby, rb_self: &Self) -> Option<RHash> {
        rb_self.env.get().map(|env| ruby.get_inner(env))
    }

    /// `extend_deadline(seconds)`: gives the request in hand so many whole seconds more, before the soft and before the
    /// hard timeout. Gives itself.
    fn extend_deadline(ruby: &Ruby, rb_self: Obj<Self>, seconds: Value) -> Result<Obj<Self>, Error> {
        let whole: Value = ruby.module_kernel().funcall("Integer", (seconds,))?;
        let in_range = i64::try_convert(whole).ok().and_then(|whole| u64::try_from(whole).ok());
        let Some(seconds) = in_range.filter(|seconds| *seconds <= MOST) else {
            let message = format!("seconds must be a whole number from 0 to {MOST}, got {whole}");
            return Err(Error::new(ruby.exception_arg_error(), message));
        };
        clockwork::extend(seconds * 1_000);
        Ok(rb_self)
    }

    /// `deadline`: when the soft timeout strikes, in seconds on the monotonic clock; nil if no request is in hand.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since the boot stay far below 2^52")]
    fn deadline(_rb_self: &Self) -> Option<f64> {
        let deadline = clockwork::soft_deadline();
        (deadline != 0).then(|| deadline as f64 / 1_000.0)
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("RequestTimeout", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("rack_env", method!(RequestTimeout::rack_env, 0))?;
    class.define_method("extend_deadline", method!(RequestTimeout::extend_deadline, 1))?;
    class.define_method("deadline", method!(RequestTimeout::deadline, 0))?;
    Ok(())
}
