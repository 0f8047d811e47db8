//! The real program: its answers, its system calls, and what its load makes of a server that is wrong.

#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const FLOOR: &str = env!("CARGO_BIN_EXE_floor");
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(10);

/// A child that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Floor {
    address: String,
    directory: TempDir,
    process: Process,
}

impl Floor {
    /// On a free port, with more options.
    fn start(options: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self::start_at(|_| format!("127.0.0.1:{port}"), options)
    }

    /// On a Unix socket in its directory.
    fn start_unix(options: &[&str]) -> Self {
        Self::start_at(|directory| directory.join("socket").display().to_string(), options)
    }

    fn start_at(address: impl Fn(&Path) -> String, options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let response = directory.path().join("response");
        fs::write(&response, RESPONSE).unwrap();
        fs::write(directory.path().join("request"), REQUEST).unwrap();
        let address = address(directory.path());
        let mut command = Command::new(FLOOR);
        command.args(["serve", &address, "--response"]).arg(response).args(options);
        let floor = Self { address, directory, process: Process(command.spawn().unwrap()) };
        wait_until("the floor listens", || floor.listens());
        floor
    }

    fn listens(&self) -> bool {
        if self.address.starts_with('/') {
            UnixStream::connect(&self.address).is_ok()
        } else {
            TcpStream::connect(&self.address).is_ok()
        }
    }

    fn load(&self, option: &str, value: &str) -> Output {
        self.load_with(&[option, value])
    }

    fn load_with(&self, options: &[&str]) -> Output {
        let kind = format!("get=1={}", self.directory.path().join("request").display());
        Command::new(FLOOR).args(["load", &self.address]).args(options).arg(&kind).output().unwrap()
    }

    fn status(&self) -> String {
        fs::read_to_string(format!("/proc/{}/status", self.process.0.id())).unwrap()
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The calls that strace sees while the load runs, or why it sees none.
fn traced(floor: &Floor, load: &[&str]) -> Result<Vec<String>, String> {
    // An answer, and sleep after it: all that came before is over.
    assert!(floor.load_with(load).status.success());
    wait_until("the floor waits", || floor.status().contains("State:\tS"));
    let trace = floor.directory.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-p", &floor.process.0.id().to_string(), "-o"]).arg(&trace).stderr(Stdio::piped());
    let mut strace = Process(command.spawn().map_err(|error| format!("strace does not start: {error}"))?);
    let mut said = String::new();
    BufReader::new(strace.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
    if !said.contains(" attached") {
        return Err(format!("strace says: {said}"));
    }
    assert!(floor.load_with(load).status.success());
    wait_until("the floor waits again", || floor.status().contains("State:\tS"));
    // Told to end, it detaches first and writes what it has seen.
    assert!(Command::new("kill").arg(strace.0.id().to_string()).status().unwrap().success());
    strace.0.wait().unwrap();
    Ok(fs::read_to_string(trace).unwrap().lines().filter_map(name_of_call).collect())
}

/// `1234 read(4, …) = 5`; the call under way at the end is `<detached ...>`, or has no result.
fn name_of_call(line: &str) -> Option<String> {
    if line.contains("<detached") || line.contains("+++") || line.contains("---") {
        return None;
    }
    let call = line.split_whitespace().nth(1)?;
    Some(call.split('(').next()?.to_owned())
}

#[test]
fn serves_a_connection_with_five_system_calls() {
    let floor = Floor::start(&[]);
    let calls = match traced(&floor, &["--requests", "3"]) {
        Ok(calls) => calls,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    let expected = ["accept4", "read", "write", "shutdown", "close"].repeat(3);
    // The first call may have been under way when strace came.
    let seen = if calls.first().is_some_and(|call| call == "accept4") { &expected[..] } else { &expected[1..] };
    assert_eq!(calls, seen);
}

#[test]
fn serves_a_request_of_a_connection_that_stays_open_with_two_system_calls() {
    let floor = Floor::start(&["--keep-alive"]);
    let calls = match traced(&floor, &["--requests", "20", "--keep-alive"]) {
        Ok(calls) => calls,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    let count = |name: &str| calls.iter().filter(|call| *call == name).count();
    assert_eq!((count("accept4"), count("write"), count("close")), (1, 20, 1), "{calls:?}");
    // The last one finds the end of the connection.
    assert_eq!((count("read"), count("epoll_ctl")), (21, 1), "{calls:?}");
    assert!(
        calls
            .iter()
            .all(|call| matches!(&call[..], "accept4" | "read" | "write" | "close" | "epoll_ctl" | "epoll_pwait")),
        "{calls:?}"
    );
}

#[test]
fn keeps_connections_open_in_several_processes() {
    let floor = Floor::start_unix(&["--keep-alive", "--workers", "2"]);
    let output = floor.load_with(&["--requests", "100", "--connections", "8", "--keep-alive"]);
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("all\t100\t"));
}

#[test]
fn answers_only_when_the_body_has_come() {
    let floor = Floor::start(&["--body", "4"]);
    let mut client = TcpStream::connect(&floor.address).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    client.write_all(b"POST / HTTP/1.1\r\n\r\nbod").unwrap();
    assert!(client.read(&mut [0]).is_err(), "it answered too early");
    client.write_all(b"y").unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, RESPONSE);
}

#[test]
fn serves_a_unix_socket_from_several_processes() {
    let floor = Floor::start_unix(&["--workers", "3"]);
    let pid = floor.process.0.id();
    let list = format!("/proc/{pid}/task/{pid}/children");
    wait_until("three workers", || fs::read_to_string(&list).unwrap().split_whitespace().count() == 3);
    let children = fs::read_to_string(&list).unwrap();
    let children: Vec<PathBuf> = children.split_whitespace().map(|pid| Path::new("/proc").join(pid)).collect();
    let output = floor.load("--requests", "50");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("all\t50\t"));
    drop(floor);
    wait_until("its children have ended", || !children.iter().any(|child| is_alive(child)));
}

/// Whoever is nobody's child any more is reaped by others, when they come to it.
fn is_alive(process: &Path) -> bool {
    fs::read_to_string(process.join("status")).is_ok_and(|status| !status.contains("State:\tZ"))
}

#[test]
fn load_ends_with_the_time() {
    let floor = Floor::start(&[]);
    let output = floor.load("--seconds", "0.2");
    let text = String::from_utf8(output.stdout).unwrap();
    let fields: Vec<&str> = text.lines().next().unwrap().split('\t').collect();
    assert_eq!(fields.len(), 6);
    let seconds: f64 = fields[2].parse().unwrap();
    assert!((0.2..2.0).contains(&seconds), "{text}");
}

#[test]
fn load_fails_on_a_wrong_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let _ = connection.read(&mut [0; 1000]).unwrap();
        connection.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let directory = tempfile::tempdir().unwrap();
    let request = directory.path().join("request");
    fs::write(&request, REQUEST).unwrap();
    let kind = format!("get=1={}", request.display());
    let output = Command::new(FLOOR).args(["load", &address, "--requests", "1", &kind]).output().unwrap();
    server.join().unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, format!("floor: request get to {address}: the answer is \"HTTP/1.1 503 Busy\"\n"));
}

#[test]
fn refuses_bad_arguments_in_one_line() {
    for (arguments, message) in [
        (&["serve", "127.0.0.1:1", "--response", "/nowhere"][..], "cannot read /nowhere: No such file or directory"),
        (&["serve", "0.0.0.0:0", "--response", "/dev/null"], "cannot listen on 0.0.0.0:0: only 127.0.0.1 is served"),
        (&["load", "127.0.0.1:1"], "load wants either --seconds or --requests"),
        (&["load", "127.0.0.1:1", "--requests", "1"], "load wants at least one NAME=WEIGHT=FILE with a weight"),
        (&["load", "127.0.0.1:1", "--seconds", "-1"], "--seconds -1: "),
        (&["serve", "x", "--response", "/dev/null", "--what"], "unexpected argument --what"),
    ] {
        let output = Command::new(FLOOR).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with(&format!("floor: {message}")), "{arguments:?}: {said}");
        assert!(!output.status.success());
    }
}
