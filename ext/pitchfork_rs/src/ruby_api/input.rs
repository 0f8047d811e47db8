//! `PitchforkRs::Input`: the `rack.input` of a request.

use std::sync::{Arc, Mutex, MutexGuard};

use magnus::prelude::*;
use magnus::scan_args::scan_args;
use magnus::{Error, RModule, RString, Ruby, Value, method};

use crate::rack::body::{Body, Failure};
use crate::rack::call;
use crate::vm::string;

/// A request body as Rack wants it: bytes, read when asked for, from the start again after `rewind`.
#[magnus::wrap(class = "PitchforkRs::Input", free_immediately, size)]
pub struct Input {
    /// `None` for a request without a body.
    body: Option<Arc<Mutex<Body>>>,
}

impl Input {
    /// The input of a request with this body.
    pub fn new(body: Option<Arc<Mutex<Body>>>) -> Self {
        Self { body }
    }

    /// The body, unless another thread is reading it. Waiting for that one here could wait for ever: it may need the
    /// lock on the VM that this thread holds.
    fn body(&self, ruby: &Ruby) -> Result<Option<MutexGuard<'_, Body>>, Error> {
        let busy = |_| Error::new(ruby.exception_io_error(), "another thread is reading this request body");
        self.body.as_ref().map(|body| body.try_lock().map_err(busy)).transpose()
    }

    /// `read(length = nil, buffer = nil)`, as `IO#read`.
    fn read(ruby: &Ruby, rb_self: &Self, args: &[Value]) -> Result<Option<RString>, Error> {
        let args = scan_args::<(), (Option<Option<i64>>, Option<Option<RString>>), (), (), (), ()>(args)?;
        let (length, buffer) = (args.optional.0.flatten(), args.optional.1.flatten());
        let length = match length {
            Some(negative @ ..0) => {
                let what = format!("negative length {negative} given");
                return Err(Error::new(ruby.exception_arg_error(), what));
            }
            Some(length) => Some(length.cast_unsigned()),
            None => None,
        };
        let mut bytes = Vec::new();
        if let Some(mut body) = rb_self.body(ruby)? {
            body.read(ruby, length.unwrap_or(u64::MAX), &mut bytes).map_err(|failure| raise(ruby, failure))?;
        }
        let read = string::binary(ruby, &bytes);
        let result = match buffer {
            Some(buffer) => buffer.funcall("replace", (read,))?,
            None => read,
        };
        // At the end, reading some bytes gives nil and reading the rest gives an empty string.
        let at_end = bytes.is_empty() && length.is_some_and(|length| length > 0);
        Ok((!at_end).then_some(result))
    }

    /// `gets`: the next line with its end, or nil.
    fn gets(ruby: &Ruby, rb_self: &Self) -> Result<Option<RString>, Error> {
        let mut line = Vec::new();
        if let Some(mut body) = rb_self.body(ruby)? {
            body.read_line(ruby, &mut line).map_err(|failure| raise(ruby, failure))?;
        }
        Ok((!line.is_empty()).then(|| string::binary(ruby, &line)))
    }

    /// `each { |line| }`.
    fn each(ruby: &Ruby, rb_self: magnus::typed_data::Obj<Self>) -> Result<Value, Error> {
        if !ruby.block_given() {
            return Ok(rb_self.enumeratorize("each", ()).as_value());
        }
        while let Some(line) = Self::gets(ruby, &rb_self)? {
            ruby.yield_value::<_, Value>(line)?;
        }
        Ok(rb_self.as_value())
    }

    /// `rewind`.
    fn rewind(ruby: &Ruby, rb_self: &Self) -> Result<i64, Error> {
        if let Some(mut body) = rb_self.body(ruby)? {
            body.rewind();
        }
        Ok(0)
    }

    /// `size`, in bytes.
    fn size(ruby: &Ruby, rb_self: &Self) -> Result<u64, Error> {
        match rb_self.body(ruby)? {
            Some(mut body) => body.size(ruby).map_err(|failure| raise(ruby, failure)),
            None => Ok(0),
        }
    }

    /// `close`: the application has no more interest; what is left is read away with the connection.
    fn close(_ruby: &Ruby, _rb_self: &Self) {}

    /// `external_encoding`: bytes.
    fn external_encoding(ruby: &Ruby, _rb_self: &Self) -> Result<Value, Error> {
        ruby.class_object().const_get::<_, RModule>("Encoding")?.const_get("BINARY")
    }
}

/// The exception that stands for a failure.
fn raise(ruby: &Ruby, failure: Failure) -> Error {
    let class = match &failure {
        Failure::Interrupted(_) => None,
        Failure::Gone | Failure::Late => call::client_shutdown(ruby).ok(),
        Failure::Refused(_) => call::parser_error(ruby).ok(),
        Failure::Storage(_) => Some(ruby.exception_io_error()),
    };
    match (failure, class) {
        (Failure::Interrupted(error), _) => error,
        (failure, class) => {
            let error = Error::new(class.unwrap_or_else(|| ruby.exception_io_error()), failure.to_string());
            without_backtrace(error)
        }
    }
}

/// Nothing in the application's stack is to blame for what a client does.
fn without_backtrace(error: Error) -> Error {
    let exception = match error.error_type() {
        magnus::error::ErrorType::Error(class, message) => class.new_instance((message.to_string(),)),
        _ => return error,
    };
    match exception {
        Ok(exception) => {
            let empty = Ruby::get_with(exception).ary_new();
            match exception.funcall::<_, _, Value>("set_backtrace", (empty,)) {
                Ok(_) => exception.into(),
                Err(error) => error,
            }
        }
        Err(error) => error,
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Input", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("read", method!(Input::read, -1))?;
    class.define_method("gets", method!(Input::gets, 0))?;
    class.define_method("each", method!(Input::each, 0))?;
    class.define_method("rewind", method!(Input::rewind, 0))?;
    class.define_method("size", method!(Input::size, 0))?;
    class.define_method("close", method!(Input::close, 0))?;
    class.define_method("external_encoding", method!(Input::external_encoding, 0))?;
    Ok(())
}
