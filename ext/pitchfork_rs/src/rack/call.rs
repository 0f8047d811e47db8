//! Calling into the application, and telling its errors from orders to end.

use magnus::error::ErrorType;
use magnus::prelude::*;
use magnus::{Error, ExceptionClass, RModule, Ruby, Value};

/// Whether an error is the application's own: the request fails, and the worker goes on. Exits, signals and throws
/// are not; they go their way.
pub fn is_application_error(ruby: &Ruby, error: &Error) -> bool {
    match error.error_type() {
        ErrorType::Jump(_) => false,
        ErrorType::Error(..) => true,
        ErrorType::Exception(exception) => {
            let ours: [ExceptionClass; 5] = [
                ruby.exception_standard_error(),
                ruby.exception_script_error(),
                ruby.exception_no_mem_error(),
                ruby.exception_sys_stack_error(),
                // What a panic in Rust code below the application has become.
                ruby.exception_fatal(),
            ];
            ours.iter().any(|class| exception.is_kind_of(*class))
        }
    }
}

/// What Ruby's `exit` raises.
pub fn exit(ruby: &Ruby) -> Error {
    ruby.exception_system_exit().new_instance((0, "exit")).map_or_else(|error| error, Error::from)
}

/// Whether an error says that the client went away.
pub fn is_client_shutdown(ruby: &Ruby, error: &Error) -> bool {
    client_shutdown(ruby).is_ok_and(|class| error.is_kind_of(class))
}

/// `PitchforkRs::ClientShutdown`.
pub fn client_shutdown(ruby: &Ruby) -> Result<ExceptionClass, Error> {
    module(ruby)?.const_get("ClientShutdown")
}

/// `PitchforkRs::HttpParserError`.
pub fn parser_error(ruby: &Ruby) -> Result<ExceptionClass, Error> {
    module(ruby)?.const_get("HttpParserError")
}

/// `PitchforkRs`.
pub fn module(ruby: &Ruby) -> Result<RModule, Error> {
    ruby.class_object().const_get("PitchforkRs")
}

/// Logs an error the way all errors are logged: `PREFIX: MESSAGE (CLASS)`, then its backtrace. Never fails: a logger
/// that raises must not cost more than its line.
pub fn log_error(ruby: &Ruby, logger: Value, prefix: &str, error: &Error) {
    let exception = match error.error_type() {
        ErrorType::Exception(exception) => Ok(*exception),
        ErrorType::Error(class, message) => class.new_instance((message.to_string(),)),
        ErrorType::Jump(_) => ruby.exception_runtime_error().new_instance((error.to_string(),)),
    };
    let Ok(exception) = exception else { return };
    let arguments = (logger, prefix, exception);
    let _ = module(ruby).and_then(|module| module.funcall::<_, _, Value>("log_error", arguments));
}
