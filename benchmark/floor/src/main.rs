//! `floor serve`: the least that a server can do for a request. Its system calls for each connection are `accept4`, `read`,
//! `write`, `shutdown` and `close`; it parses nothing and computes nothing. What a server needs more than this is what
//! it costs. With `--keep-alive` connections stay open, and a request costs `read`, `write`, and its share of an
//! `epoll_wait`.
//!
//! `floor load`: a load of one connection for each request, over TCP or a Unix socket, with requests of several kinds.
//!
//! Both are for measurements on the loopback only.

mod address;
mod load;
mod quantile;
mod serve;

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use pico_args::Arguments;

use address::Address;

const USAGE: &str = "\
usage: floor serve ADDRESS --response FILE [--workers N] [--body BYTES] [--pause-ms N] [--keep-alive]
       floor load ADDRESS (--seconds N | --requests N) [--connections N] [--keep-alive] NAME=WEIGHT=FILE...

ADDRESS is 127.0.0.1:PORT or the path of a Unix socket. `serve` answers each connection with the bytes of FILE, once it
has read a request head and BYTES of a body. `load` sends the bytes of the files, each as often as its weight says among
the weights of all, and checks status and length of the answers. With --keep-alive connections stay open, for one
request after the other. `load` writes one line for all requests and one for each NAME: name, number, seconds, and 50th
percentile, 99th percentile and maximum in microseconds, separated by tabs.";

fn main() -> ExitCode {
    match run(Arguments::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    if arguments.contains(["-h", "--help"]) {
        println!("{USAGE}");
        return Ok(());
    }
    match arguments.subcommand()?.as_deref() {
        Some("serve") => serve(arguments),
        Some("load") => load(arguments),
        other => Err(format!("unknown command {}\n{USAGE}", other.unwrap_or("(none)")).into()),
    }
}

fn serve(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let file: PathBuf = arguments.value_from_str("--response")?;
    let workers = arguments.opt_value_from_str("--workers")?.unwrap_or(NonZeroUsize::MIN);
    let body: usize = arguments.opt_value_from_str("--body")?.unwrap_or(0);
    let pause: u64 = arguments.opt_value_from_str("--pause-ms")?.unwrap_or(0);
    let keep_alive = arguments.contains("--keep-alive");
    let address: Address = arguments.free_from_str()?;
    nothing_left(arguments)?;
    if matches!(address, Address::Inherited) {
        serve::end_with_the_parent()?;
    }
    let response = fs::read(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let listener = address.listen().map_err(|error| format!("cannot listen on {address}: {error}"))?;
    if workers == NonZeroUsize::MIN {
        let service = serve::Service { response, body, pause: Duration::from_millis(pause) };
        if keep_alive { service.serve_persistently(&listener)? } else { service.serve(&listener)? }
    } else {
        let options = [format!("--body={body}"), format!("--pause-ms={pause}"), "--response".into()];
        let mut arguments: Vec<OsString> = vec!["serve".into(), Address::INHERITED.into()];
        arguments.extend(keep_alive.then(|| "--keep-alive".into()));
        arguments.extend(options.map(OsString::from));
        arguments.push(file.into());
        serve::in_processes(&listener, workers, &arguments)?;
    }
    Ok(())
}

fn load(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let connections = arguments.opt_value_from_str("--connections")?.unwrap_or(NonZeroUsize::MIN);
    let seconds: Option<f64> = arguments.opt_value_from_str("--seconds")?;
    let requests: Option<u64> = arguments.opt_value_from_str("--requests")?;
    let until = match (seconds, requests) {
        (Some(seconds), None) => load::Until::Elapsed(
            Duration::try_from_secs_f64(seconds).map_err(|error| format!("--seconds {seconds}: {error}"))?,
        ),
        (None, Some(requests)) => load::Until::Sent(requests),
        _ => return Err("load wants either --seconds or --requests".into()),
    };
    let keep_alive = arguments.contains("--keep-alive");
    let address: Address = arguments.free_from_str()?;
    let mut kinds = Vec::new();
    while let Some(kind) = arguments.opt_free_from_str::<String>()? {
        kinds.push(load::Kind::parse(&kind)?);
    }
    nothing_left(arguments)?;
    if kinds.iter().all(|kind| kind.weight == 0) {
        return Err("load wants at least one NAME=WEIGHT=FILE with a weight".into());
    }
    let load = load::Load { address, connections: connections.get(), until, kinds, keep_alive };
    print!("{}", load.run()?);
    Ok(())
}

fn nothing_left(arguments: Arguments) -> Result<(), String> {
    match arguments.finish().first() {
        Some(left) => Err(format!("unexpected argument {}", left.display())),
        None => Ok(()),
    }
}
