//! Processes that have nothing any more of the program they were forked from. This program plays them itself: each test
//! runs one of the parts below in a process of its own.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like a test")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use pitchfork_core::sys::{alone, limits};

const PART: &str = "PITCHFORK_RS_PART";

/// Not a test but for those who play a part.
#[test]
fn part() {
    let parent = getppid().as_raw();
    match std::env::var(PART).as_deref() {
        Ok("parent") => {
            let mut child = play("hanging", Stdio::null());
            println!("child {}", child.id());
            // For ever: it is this process that ends first.
            child.wait().unwrap();
        }
        Ok("hanging") => alone::run(
            parent,
            &[],
            |_| false,
            || {
                loop {
                    std::hint::spin_loop();
                }
            },
        ),
        Ok("panicking") => alone::run(parent, &[], |_| false, || panic!("on purpose")),
        Ok("unrelated") => alone::run(1, &[], |_| false, || 0),
        // Without a descriptor to read a directory by.
        Ok("exhausted") => {
            // What this program has inherited may have high numbers.
            let open = std::fs::read_dir("/proc/self/fd").unwrap();
            let numbers = open.map(|entry| entry.unwrap().file_name().into_string().unwrap().parse::<u64>().unwrap());
            let limit = numbers.max().unwrap() + 100;
            setrlimit(Resource::RLIMIT_NOFILE, limit, limit).unwrap();
            let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
            let last = files.pop().unwrap();
            let kept = [files[3].as_fd(), last.as_fd()];
            alone::run(parent, &kept, |_| false, || i32::try_from(limits::open_descriptors().unwrap_or(0)).unwrap())
        }
        Ok("counting") => {
            let files: Vec<File> = (0..20).map(|_| File::open("/dev/null").unwrap()).collect();
            let kept = [files[3].as_fd(), files[7].as_fd()];
            // With the three standard streams.
            alone::run(parent, &kept, |_| false, || i32::try_from(limits::open_descriptors().unwrap()).unwrap())
        }
        _ => {}
    }
}

fn play(part: &str, stdout: Stdio) -> Child {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", "part", "--nocapture", "--test-threads=1"];
    Command::new(program).args(arguments).env(PART, part).stdout(stdout).stderr(Stdio::null()).spawn().unwrap()
}

fn wait_until(what: &str, time: Duration, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + time;
    while !condition() {
        assert!(Instant::now() < end, "{what}: in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn field(pid: i32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|value| value.trim().to_owned())
}

/// Whether it runs. Whoever adopts it may be slow to reap it.
fn is_running(pid: i32) -> bool {
    field(pid, "State").is_some_and(|state| !state.starts_with(['Z', 'X']))
}

fn catches_term(pid: i32) -> bool {
    let caught = field(pid, "SigCgt").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    caught.is_some_and(|mask| mask & 0x7fff_ffff == 1 << (Signal::SIGTERM as u64 - 1))
}

#[test]
fn one_that_hangs_ends_with_its_parent_and_by_no_other_signal() {
    let mut parent = play("parent", Stdio::piped());
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let child = lines.map_while(Result::ok).find_map(|line| line.split_once("child ")?.1.parse().ok());
    let child: i32 = child.unwrap();
    wait_until("it is alone", Duration::from_secs(20), || catches_term(child));
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1] {
        kill(Pid::from_raw(child), signal).unwrap();
    }
    assert!(is_running(child));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("it ends", Duration::from_secs(15), || !is_running(child));
}

#[test]
fn the_status_is_its_own_or_says_what_was_wrong() {
    for part in ["panicking", "unrelated"] {
        let status = play(part, Stdio::null()).wait().unwrap();
        assert_eq!(status.code(), Some(1), "{part}");
    }
}

#[test]
fn only_what_is_kept_stays_open() {
    for part in ["counting", "exhausted"] {
        let status = play(part, Stdio::null()).wait().unwrap();
        assert_eq!(status.code(), Some(5), "{part}");
    }
}
