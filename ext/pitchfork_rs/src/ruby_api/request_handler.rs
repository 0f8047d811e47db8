//! `PitchforkRs::RequestHandler`: one request on a socket, without any process around it.

use magnus::value::Opaque;
use magnus::{DataTypeFunctions, Error, RHash, RModule, Ruby, TypedData, Value, function, gc, method, prelude::*};
use std::os::fd::RawFd;

use super::settings;
use crate::rack::body::Body;
use crate::rack::connection::Connection;
use crate::rack::handler::{Handler, Host, Served};
use crate::rack::settings::Settings;

/// Serves connections with an application, in the calling process.
#[derive(TypedData)]
#[magnus(class = "PitchforkRs::RequestHandler", free_immediately, size, mark)]
pub struct RequestHandler {
    app: Opaque<Value>,
    logger: Opaque<Value>,
    settings: Settings,
}

impl DataTypeFunctions for RequestHandler {
    fn mark(&self, marker: &gc::Marker) {
        marker.mark(self.app);
        marker.mark(self.logger);
    }
}

impl RequestHandler {
    /// `new(app, logger, settings)`, the settings as `Configurator#native_settings` gives them.
    fn new(ruby: &Ruby, app: Value, logger: Value, settings: RHash) -> Result<Self, Error> {
        Ok(Self { app: app.into(), logger: logger.into(), settings: settings::rack(ruby, settings)? })
    }

    /// `serve(io)`: serves one request on a socket, and closes nothing but its own copy of it. Gives the
    /// environment, or nil if the application was not called.
    fn serve(ruby: &Ruby, rb_self: &Self, io: Value) -> Result<Option<Value>, Error> {
        let fileno: RawFd = io.funcall("fileno", ())?;
        let descriptor = crate::vm::io::duplicate(fileno)
            .map_err(|error| Error::new(ruby.exception_io_error(), error.to_string()))?;
        let mut connection = Connection::new(descriptor, None);
        let (app, logger) = (ruby.get_inner(rb_self.app), ruby.get_inner(rb_self.logger));
        let mut handler = Handler::new(ruby, app, logger, rb_self.settings)?;
        let mut host = Host {
            begin: &mut |_, _, _| Ok(()),
            may_persist: &|| false,
            waits: true,
            pass_on: &|_, _, _, content| Err(content),
        };
        match handler.serve(ruby, &mut connection, &mut host)? {
            Served::Called { ended, body, .. } => {
                ended.conclude(ruby)?;
                Body::end_shared(ruby, &body, Some(&connection.socket))?;
                Ok(Some(ended.env.as_value()))
            }
            Served::Unheard | Served::Waiting(_) => Ok(None),
        }
    }
}

/// Defines the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("RequestHandler", ruby.class_object())?;
    class.define_singleton_method("new", function!(RequestHandler::new, 3))?;
    class.define_method("serve", method!(RequestHandler::serve, 1))?;
    Ok(())
}
