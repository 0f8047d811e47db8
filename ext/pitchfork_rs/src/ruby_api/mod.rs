//! The Ruby classes of this extension, one file each.

pub mod early_hints;
pub mod hijack;
pub mod info;
pub mod input;
pub mod listening;
pub mod mem_info;
pub mod native_monitor;
pub mod request_handler;
pub mod request_timeout;
pub mod settings;
pub mod stream;
pub mod worker;
