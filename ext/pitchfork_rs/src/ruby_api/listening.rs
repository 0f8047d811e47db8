//! How `HttpServer` binds: what needs no monitor stands here as singleton methods of `NativeMonitor`.

use std::os::fd::{AsFd, IntoRawFd, RawFd};

use magnus::prelude::*;
use magnus::{Error, RArray, RClass, RHash, RString, Ruby, Value, function};
use nix::poll::{PollTimeout, poll};
use pitchfork_core::children::Millis;
use pitchfork_core::error::Error as CoreError;
use pitchfork_core::listen::{Address, Listener, Options, make_way};
use pitchfork_core::sys::clock;

use super::settings::fetch;
use crate::process::child::raise;
use crate::process::{private, signals};
use crate::vm::{gvl, io};

/// What the configuration says about one address.
pub struct Settings {
    options: Options,
    queues: usize,
    /// How many of its queues each worker serves.
    pub per_worker: usize,
}

/// Reads the options of the directive `listen`, all of which are there.
pub fn options(ruby: &Ruby, options: RHash) -> Result<Settings, Error> {
    let queues: u32 = fetch(ruby, options, "queues")?;
    let backlog: u64 = fetch(ruby, options, "backlog")?;
    Ok(Settings {
        options: Options {
            backlog: i32::try_from((backlog / u64::from(queues)).max(1)).unwrap_or(i32::MAX),
            receive_buffer: fetch(ruby, options, "rcvbuf")?,
            send_buffer: fetch(ruby, options, "sndbuf")?,
            tcp_nodelay: fetch(ruby, options, "tcp_nodelay")?,
            tcp_nopush: fetch(ruby, options, "tcp_nopush")?,
            tcp_defer_accept: fetch(ruby, options, "tcp_defer_accept")?,
            ipv6_only: fetch(ruby, options, "ipv6only")?,
            reuse_port: fetch(ruby, options, "reuseport")?,
            umask: fetch(ruby, options, "umask")?,
        },
        queues: queues as usize,
        per_worker: fetch(ruby, options, "queues_per_worker")?,
    })
}

/// Binds an address, as many times as it shall have queues.
pub fn bind(ruby: &Ruby, address: RString, settings: &Settings) -> Result<Vec<Listener>, Error> {
    let bound = parse(address)?.and_then(|address| Listener::bind_queues(address, settings.options, settings.queues));
    bound.map_err(|error| raise(ruby, &error))
}

fn parse(address: RString) -> Result<Result<Address, CoreError>, Error> {
    Ok(address.to_string()?.parse())
}

/// Takes over the sockets of some IOs, all of one address.
pub fn adopt(ruby: &Ruby, ios: RArray, settings: &Settings) -> Result<Vec<Listener>, Error> {
    let adopt = |(at, number): (usize, RawFd)| {
        let socket = io::duplicate(number).map_err(|error| CoreError::system("dup", number.to_string(), error))?;
        Listener::adopt(socket, settings.options, at > 0)
    };
    let numbers = ios.into_iter().map(|io: Value| io.funcall("fileno", ())).collect::<Result<Vec<RawFd>, Error>>()?;
    numbers.into_iter().enumerate().map(adopt).collect::<Result<_, _>>().map_err(|error| raise(ruby, &error))
}

/// For each socket its address, the number of a second descriptor for whoever takes it, and its name in log lines.
///
/// Ruby gets a descriptor of its own, so that neither side closes what the other still uses.
pub fn show(ruby: &Ruby, listeners: &[Listener]) -> Result<RArray, Error> {
    let shown = ruby.ary_new();
    for listener in listeners {
        let copy = listener
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| raise(ruby, &CoreError::system("dup", listener.address().to_string(), error)))?;
        shown.push((listener.address().to_string(), copy.into_raw_fd(), listener.to_log()))?;
    }
    Ok(shown)
}

/// `make_way(address)`: removes what a server has left behind at the path of a Unix socket; whether there was something.
fn make_way_for(ruby: &Ruby, address: RString) -> Result<bool, Error> {
    parse(address)?.and_then(|address| make_way(&address)).map_err(|error| raise(ruby, &error))
}

/// `listen_privately(address, options)`: binds an address and listens on it, for this worker alone. Gives what
/// [`show`] does.
fn listen_privately(ruby: &Ruby, address: RString, settings: RHash) -> Result<RArray, Error> {
    let settings = options(ruby, settings)?;
    let queues = bind(ruby, address, &settings)?;
    queues.iter().try_for_each(Listener::listen).map_err(|error| raise(ruby, &error))?;
    let shown = show(ruby, &queues)?;
    private::add(queues);
    Ok(shown)
}

/// `pause(millis)`: waits, and gives nil; or, as soon as a signal to end has been noted, the signal's number.
fn pause(ruby: &Ruby, time: Millis) -> Result<Option<i32>, Error> {
    // A signal interrupts the wait of the main thread only.
    const SLICE: Millis = 100;
    let end = clock::monotonic() + time;
    loop {
        let left = end.saturating_sub(clock::monotonic());
        let slice = PollTimeout::try_from(left.min(SLICE)).unwrap_or(PollTimeout::ZERO);
        gvl::wait(ruby, || poll(&mut [], slice))?;
        if let Some(signal) = [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT].into_iter().find(|&one| signals::take(one)) {
            return Ok(Some(signal));
        }
        if left == 0 {
            return Ok(None);
        }
    }
}

/// Defines the singleton methods.
pub fn init(class: RClass) -> Result<(), Error> {
    class.define_singleton_method("make_way", function!(make_way_for, 1))?;
    class.define_singleton_method("may_listen_privately?", function!(private::is_open, 0))?;
    class.define_singleton_method("listen_privately", function!(listen_privately, 2))?;
    class.define_singleton_method("pause", function!(pause, 1))?;
    Ok(())
}
