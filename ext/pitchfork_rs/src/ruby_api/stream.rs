//! `PitchforkRs::Stream`: what a streaming body is called with.

use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard};

use magnus::prelude::*;
use magnus::scan_args::scan_args;
use magnus::typed_data::Obj;
use magnus::value::Opaque;
use magnus::{Error, RModule, RString, Ruby, Value, method};

use super::input;
use crate::rack::body::Body;
use crate::rack::call;
use crate::rack::framed::Framed;
use crate::rack::hijack::ruby_socket;
use crate::rack::sender::{Failure, Sender};
use crate::vm::gvl;

/// The two directions of a connection, while a streaming body has them.
pub struct Ends {
    /// The response on its way out.
    pub sender: Sender,
    /// Its framing.
    pub framed: Framed,
    /// What the client sends.
    pub reader: Arc<Mutex<Body>>,
    /// Whether the application is done with writing.
    pub write_closed: bool,
    /// Whether the application is done with reading.
    pub read_closed: bool,
}

/// A stream: `read`, `write`, `<<`, `flush`, `close`, `close_read`, `close_write`, `closed?`, `to_io`.
#[magnus::wrap(class = "PitchforkRs::Stream", free_immediately, size)]
pub struct Stream {
    ends: Arc<Mutex<Option<Ends>>>,
    logger: Opaque<Value>,
}

impl Stream {
    /// A stream over these ends, which are taken back from the `Arc` when the body has returned.
    ///
    /// `logger` has to be kept alive by the caller for as long as the ends are there.
    pub fn new(ends: Arc<Mutex<Option<Ends>>>, logger: Value) -> Self {
        Self { ends, logger: logger.into() }
    }

    fn ends(&self, ruby: &Ruby) -> Result<MutexGuard<'_, Option<Ends>>, Error> {
        // Nobody waits for the lock: whoever holds it may need the lock on the VM that this thread holds.
        self.ends.try_lock().map_err(|_| Error::new(ruby.exception_io_error(), "another thread is using this stream"))
    }

    fn put(ruby: &Ruby, rb_self: &Self, part: Value) -> Result<usize, Error> {
        let part: RString = match RString::from_value(part) {
            Some(part) => part,
            None => part.funcall("to_s", ())?,
        };
        let mut ends = rb_self.ends(ruby)?;
        let open = ends.as_mut().filter(|ends| !ends.write_closed);
        let Ends { sender, framed, .. } =
            open.ok_or_else(|| Error::new(ruby.exception_io_error(), "not opened for writing"))?;
        framed.send(ruby, sender, part).map_err(|failure| raise(ruby, failure))?;
        Ok(part.len())
    }

    /// `write(*strings)`: the number of bytes.
    fn write(ruby: &Ruby, rb_self: &Self, args: &[Value]) -> Result<usize, Error> {
        let mut written = 0;
        for part in args {
            written += Self::put(ruby, rb_self, *part)?;
        }
        Self::push(ruby, rb_self)?;
        Ok(written)
    }

    /// `<< string`.
    fn append(ruby: &Ruby, rb_self: Obj<Self>, part: Value) -> Result<Obj<Self>, Error> {
        Self::put(ruby, &rb_self, part)?;
        Self::push(ruby, &rb_self)?;
        Ok(rb_self)
    }

    /// `flush`: what was written has been sent already.
    fn flush(ruby: &Ruby, rb_self: Obj<Self>) -> Result<Obj<Self>, Error> {
        Self::push(ruby, &rb_self)?;
        Ok(rb_self)
    }

    /// A stream is for what shall be seen at once.
    fn push(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        match rb_self.ends(ruby)?.as_mut().filter(|ends| !ends.write_closed) {
            Some(ends) => ends.sender.flush(ruby).map_err(|failure| raise(ruby, failure)),
            None => Ok(()),
        }
    }

    /// `read(length = nil, buffer = nil)`, as `IO#read`.
    fn read(ruby: &Ruby, rb_self: &Self, args: &[Value]) -> Result<Option<RString>, Error> {
        let args = scan_args::<(), (Option<Option<i64>>, Option<Option<RString>>), (), (), (), ()>(args)?;
        let length = input::length(ruby, args.optional.0.flatten())?;
        let reader = match &*rb_self.ends(ruby)? {
            Some(ends) if !ends.read_closed => Arc::clone(&ends.reader),
            _ => return Err(Error::new(ruby.exception_io_error(), "not opened for reading")),
        };
        let mut bytes = Vec::new();
        let busy = |_| Error::new(ruby.exception_io_error(), "another thread is reading from this stream");
        reader
            .try_lock()
            .map_err(busy)?
            .read(ruby, length.unwrap_or(u64::MAX), &mut bytes)
            .map_err(|failure| input::raise(ruby, failure))?;
        input::result(ruby, &bytes, length, args.optional.1.flatten())
    }

    /// `close_write`: ends the response.
    fn close_write(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        let logger = ruby.get_inner(rb_self.logger);
        match rb_self.ends(ruby)?.as_mut().filter(|ends| !ends.write_closed) {
            Some(ends) => ends.close_write(ruby, logger).map(drop).map_err(|failure| raise(ruby, failure)),
            None => Ok(()),
        }
    }

    /// `close_read`.
    fn close_read(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        if let Some(ends) = rb_self.ends(ruby)?.as_mut() {
            ends.read_closed = true;
        }
        Ok(())
    }

    /// `close`.
    fn close(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        Self::close_read(ruby, rb_self)?;
        Self::close_write(ruby, rb_self)
    }

    /// `closed?`
    fn is_closed(&self) -> bool {
        let ends = self.ends.try_lock();
        ends.is_ok_and(|ends| ends.as_ref().is_none_or(|ends| ends.write_closed && ends.read_closed))
    }

    /// `to_io`: a socket for `IO.select`.
    fn to_io(ruby: &Ruby, rb_self: &Self) -> Result<Value, Error> {
        match &*rb_self.ends(ruby)? {
            Some(ends) => ruby_socket(ruby, ends.sender.socket(), &[]),
            None => Err(Error::new(ruby.exception_io_error(), "closed stream")),
        }
    }
}

impl Ends {
    /// Ends the response, and lets the client see it. Whether it is whole.
    pub fn close_write(&mut self, ruby: &Ruby, logger: Value) -> Result<bool, Failure> {
        self.write_closed = true;
        let is_whole = self.framed.finish(ruby, &mut self.sender, logger)?;
        let _ = self.sender.socket().shutdown(Shutdown::Write);
        Ok(is_whole)
    }
}

/// Takes the ends back: the stream is closed for whoever still holds it.
pub fn take_back(ruby: &Ruby, ends: &Mutex<Option<Ends>>) -> Result<Option<Ends>, Error> {
    Ok(gvl::lock(ruby, ends)?.take())
}

fn raise(ruby: &Ruby, failure: Failure) -> Error {
    match failure {
        Failure::Gone => match call::client_shutdown(ruby) {
            Ok(class) => Error::new(class, "the client has gone away"),
            Err(error) => error,
        },
        Failure::Interrupted(error) => error,
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Stream", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("read", method!(Stream::read, -1))?;
    class.define_method("write", method!(Stream::write, -1))?;
    class.define_method("<<", method!(Stream::append, 1))?;
    class.define_method("flush", method!(Stream::flush, 0))?;
    class.define_method("close", method!(Stream::close, 0))?;
    class.define_method("close_read", method!(Stream::close_read, 0))?;
    class.define_method("close_write", method!(Stream::close_write, 0))?;
    class.define_method("closed?", method!(Stream::is_closed, 0))?;
    class.define_method("to_io", method!(Stream::to_io, 0))?;
    Ok(())
}
