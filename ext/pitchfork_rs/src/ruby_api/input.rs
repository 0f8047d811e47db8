//! `PitchforkRs::Input` and `PitchforkRs::RewindableInput`: the `rack.input` of a request.

use std::sync::{Arc, Mutex, MutexGuard};

use magnus::error::ErrorType;
use magnus::prelude::*;
use magnus::scan_args::scan_args;
use magnus::{Error, RModule, RString, Ruby, Value, method};

use crate::rack::body::{Body, Failure};
use crate::rack::call;
use crate::vm::string;

/// A request body as Rack wants it: bytes, read when asked for. Only one that is kept can be rewound.
#[magnus::wrap(class = "PitchforkRs::Input", free_immediately, size)]
pub enum Input {
    /// Given out once. `None` for a request without a body.
    #[magnus(class = "PitchforkRs::Input")]
    Passing(Option<Arc<Mutex<Body>>>),
    /// Kept. `None` for a request without a body.
    #[magnus(class = "PitchforkRs::RewindableInput")]
    Kept(Option<Arc<Mutex<Body>>>),
}

impl Input {
    /// The body, unless another thread is reading it. Waiting for that one here could wait for ever: it may need the
    /// lock on the VM that this thread holds.
    fn body(&self, ruby: &Ruby) -> Result<Option<MutexGuard<'_, Body>>, Error> {
        let busy = |_| Error::new(ruby.exception_io_error(), "another thread is reading this request body");
        let (Self::Passing(body) | Self::Kept(body)) = self;
        body.as_ref().map(|body| body.try_lock().map_err(busy)).transpose()
    }

    /// `read(length = nil, buffer = nil)`, as `IO#read`.
    fn read(ruby: &Ruby, rb_self: &Self, args: &[Value]) -> Result<Option<RString>, Error> {
        let args = scan_args::<(), (Option<Option<i64>>, Option<Option<RString>>), (), (), (), ()>(args)?;
        let length = length(ruby, args.optional.0.flatten())?;
        let mut bytes = Vec::new();
        if let Some(mut body) = rb_self.body(ruby)? {
            body.read(ruby, length.unwrap_or(u64::MAX), &mut bytes).map_err(|failure| raise(ruby, failure))?;
        }
        result(ruby, &bytes, length, args.optional.1.flatten())
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
        binary_encoding(ruby)
    }
}

fn binary_encoding(ruby: &Ruby) -> Result<Value, Error> {
    ruby.class_object().const_get::<_, magnus::RClass>("Encoding")?.const_get("BINARY")
}

/// The length argument of `IO#read`.
pub fn length(ruby: &Ruby, length: Option<i64>) -> Result<Option<u64>, Error> {
    match length {
        Some(negative @ ..0) => {
            let what = format!("negative length {negative} given");
            Err(Error::new(ruby.exception_arg_error(), what))
        }
        length => Ok(length.map(i64::cast_unsigned)),
    }
}

/// What `IO#read` gives: the buffer if there is one, and nil at the end if some bytes were asked for.
pub fn result(
    ruby: &Ruby,
    read: &[u8],
    length: Option<u64>,
    buffer: Option<RString>,
) -> Result<Option<RString>, Error> {
    let at_end = read.is_empty() && length.is_some_and(|length| length > 0);
    let result = match buffer {
        Some(buffer) => {
            // Into the memory that it has: whoever passes a buffer wants to make no garbage.
            buffer.funcall::<_, _, Value>("clear", ())?;
            buffer.funcall::<_, _, Value>("force_encoding", (binary_encoding(ruby)?,))?;
            buffer.cat(read);
            buffer
        }
        None => string::binary(ruby, read),
    };
    Ok((!at_end).then_some(result))
}

/// The exception that stands for a failure. It has no backtrace: nothing in the application's stack is to blame for
/// what a client does.
pub fn raise(ruby: &Ruby, failure: Failure) -> Error {
    let class = match &failure {
        Failure::Gone | Failure::Late => call::client_shutdown(ruby),
        Failure::Refused(_) => call::parser_error(ruby),
        Failure::Interrupted(_) | Failure::Storage(_) | Failure::Over => Ok(ruby.exception_io_error()),
    };
    match (failure, class) {
        (Failure::Interrupted(error), _) | (_, Err(error)) => error,
        (failure, Ok(class)) => without_backtrace(ruby, Error::new(class, failure.to_string())),
    }
}

fn without_backtrace(ruby: &Ruby, error: Error) -> Error {
    let ErrorType::Error(class, message) = error.error_type() else { return error };
    let emptied = class.new_instance((message.to_string(),)).and_then(|exception| {
        exception.funcall::<_, _, Value>("set_backtrace", (ruby.ary_new(),))?;
        Ok(exception)
    });
    emptied.map_or_else(|error| error, Error::from)
}

/// Defines the classes.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Input", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("read", method!(Input::read, -1))?;
    class.define_method("gets", method!(Input::gets, 0))?;
    class.define_method("each", method!(Input::each, 0))?;
    class.define_method("close", method!(Input::close, 0))?;
    class.define_method("external_encoding", method!(Input::external_encoding, 0))?;
    let rewindable = module.define_class("RewindableInput", class)?;
    rewindable.define_method("rewind", method!(Input::rewind, 0))?;
    rewindable.define_method("size", method!(Input::size, 0))?;
    Ok(())
}
