//! The Ruby extension of pitchfork-rs: the processes of a server, and what they show to Ruby.

#![allow(missing_docs)] // nothing here is public but what the macro below generates

mod process;
mod rack;
mod ruby_api;
mod vm;

use magnus::{Error, Ruby};

/// Called by Ruby when the extension is loaded.
#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    let module = ruby.define_module("PitchforkRs")?;
    ruby_api::early_hints::init(ruby, module)?;
    ruby_api::hijack::init(ruby, module)?;
    ruby_api::info::init(ruby, module)?;
    ruby_api::input::init(ruby, module)?;
    ruby_api::mem_info::init(ruby, module)?;
    ruby_api::native_monitor::init(ruby, module)?;
    ruby_api::request_handler::init(ruby, module)?;
    ruby_api::request_timeout::init(ruby, module)?;
    ruby_api::stream::init(ruby, module)?;
    ruby_api::worker::init(ruby, module)?;
    Ok(())
}
