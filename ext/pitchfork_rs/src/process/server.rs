//! The Ruby side of a server: its logger, its hooks, its titles.

use std::fmt;

use magnus::prelude::*;
use magnus::value::Opaque;
use magnus::{ArgList, Error, Ruby, Value};
use pitchfork_core::plan::Level;

use crate::rack::call;
use crate::vm::fork::process;
use crate::vm::title;

/// The `HttpServer` object. It is kept alive for ever, so a handle on it is as good in a forked child.
#[derive(Clone, Copy)]
pub struct Server(Opaque<Value>);

impl Server {
    /// Takes hold of an `HttpServer`.
    pub fn new(ruby: &Ruby, server: Value) -> Self {
        ruby.gc_register_mark_object(server);
        Self(server.into())
    }

    /// The object.
    pub fn value(self, ruby: &Ruby) -> Value {
        ruby.get_inner(self.0)
    }

    /// The logger of the configuration.
    pub fn logger(self, ruby: &Ruby) -> Result<Value, Error> {
        self.value(ruby).funcall("logger", ())
    }

    /// Writes a log line. Never fails: a logger that raises must not cost more than its line.
    pub fn log(self, ruby: &Ruby, level: Level, line: &str) {
        let method = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Error => "error",
            Level::Fatal => "fatal",
        };
        let _ = self.logger(ruby).and_then(|logger| logger.funcall::<_, _, Value>(method, (line,)));
    }

    /// Logs an error with its backtrace.
    pub fn log_error(self, ruby: &Ruby, prefix: &str, error: &Error) {
        if let Ok(logger) = self.logger(ruby) {
            call::log_error(ruby, logger, prefix, error);
        }
    }

    /// Calls a private method of the server.
    pub fn call<A: ArgList>(self, ruby: &Ruby, method: &str, args: A) -> Result<Value, Error> {
        self.value(ruby).funcall(method, args)
    }

    /// Runs a hook of the configuration, if it is set.
    pub fn hook<A: ArgList>(self, ruby: &Ruby, name: &str, args: A) -> Result<(), Error> {
        self.value(ruby).funcall::<_, _, Value>(format!("run_{name}"), args).map(drop)
    }

    /// Logs an error that ends this process, and gives the exit that follows. What goes its own way, such as an exit,
    /// is given back.
    pub fn fatal(self, ruby: &Ruby, prefix: &str, error: Error) -> Error {
        if !call::is_application_error(ruby, &error) {
            return error;
        }
        self.log_error(ruby, prefix, &error);
        let exit = ruby.exception_system_exit().new_instance((1, prefix.to_owned()));
        exit.map_or_else(|error| error, Error::from)
    }

    /// Runs a hook without which this process must not go on: an error in it is logged, and becomes an exit.
    pub fn hook_or_end<A: ArgList>(self, ruby: &Ruby, name: &str, args: A) -> Result<(), Error> {
        self.hook(ruby, name, args).map_err(|error| self.fatal(ruby, &format!("{name} error"), error))
    }

    /// Runs a hook whose errors change nothing: they are logged.
    pub fn hook_or_log<A: ArgList>(self, ruby: &Ruby, name: &str, args: A, prefix: &str) -> Result<(), Error> {
        match self.hook(ruby, name, args) {
            Err(error) if call::is_application_error(ruby, &error) => {
                self.log_error(ruby, prefix, &error);
                Ok(())
            }
            other => other,
        }
    }
}

/// Sets what `ps` shows of this process. The first title of a server is one that Ruby has set.
pub fn set_title(ruby: &Ruby, title: fmt::Arguments<'_>) {
    if !title::set(title) {
        let _ = process(ruby).and_then(|process| process.funcall::<_, _, Value>("setproctitle", (title.to_string(),)));
    }
}
