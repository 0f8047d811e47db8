//! What one bound socket does.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, umask};
use socket2::SockRef;

use super::*;
use crate::error::Error;
use crate::sys;

/// A client need not send anything to be accepted.
const EAGER: Options = Options {
    backlog: 16,
    receive_buffer: None,
    send_buffer: None,
    tcp_nodelay: true,
    tcp_nopush: false,
    tcp_defer_accept: 0,
    ipv6_only: None,
    reuse_port: false,
    umask: 0,
};

/// Held while a socket is bound: the umask is the process's, and tests run side by side.
static UMASK: Mutex<()> = Mutex::new(());

fn try_to_bind(address: &str, options: Options) -> Result<Listener, Error> {
    let _held = UMASK.lock();
    Listener::bind(address.parse().unwrap(), options)
}

fn bound_with(address: &str, options: Options) -> Listener {
    try_to_bind(address, options).unwrap()
}

fn bound(address: &str) -> Listener {
    bound_with(address, EAGER)
}

fn listening(address: &str, options: Options) -> Listener {
    let listener = bound_with(address, options);
    listener.listen().unwrap();
    listener
}

fn path_in(directory: &tempfile::TempDir) -> String {
    directory.path().join("s.sock").to_str().unwrap().to_owned()
}

fn way(path: &str) -> Result<bool, Error> {
    make_way(&path.parse().unwrap())
}

fn tcp(listener: &Listener) -> SocketAddr {
    match listener.address() {
        Address::Tcp(address) => *address,
        Address::Unix(_) => panic!("wanted a TCP listener"),
    }
}

#[test]
fn a_bound_port_refuses_until_it_listens() {
    let listener = bound("127.0.0.1:0");
    assert!(TcpStream::connect(tcp(&listener)).is_err());
    listener.listen().unwrap();
    let client = TcpStream::connect(tcp(&listener)).unwrap();
    let (_, peer) = listener.accept().unwrap().unwrap();
    assert_eq!(peer, Some(client.local_addr().unwrap().ip()));
    assert!(listener.accept().unwrap().is_none());
}

#[test]
fn a_port_somebody_listens_on_is_refused_by_name() {
    let listener = listening("127.0.0.1:0", EAGER);
    let error = Listener::bind(listener.address().clone(), Options::default()).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EADDRINUSE));
    assert!(error.to_string().contains(&listener.address().to_string()), "{error}");
}

#[test]
fn a_filtered_listener_keeps_its_queue_and_takes_nothing_new() {
    let listener = listening("127.0.0.1:0", EAGER);
    let mut early = TcpStream::connect(tcp(&listener)).unwrap();
    listener.refuse_new().unwrap();
    assert!(TcpStream::connect_timeout(&tcp(&listener), Duration::from_millis(200)).is_err());
    let (accepted, _) = listener.accept().unwrap().unwrap();
    drop(listener);
    TcpStream::from(accepted).write_all(b"still here").unwrap();
    let mut text = String::new();
    early.read_to_string(&mut text).unwrap();
    assert_eq!(text, "still here");
}

#[test]
fn without_the_privilege_to_filter_the_queue_is_kept_all_the_same() {
    let listener = listening("127.0.0.1:0", EAGER);
    let mut early = TcpStream::connect(tcp(&listener)).unwrap();
    sys::filter::demand_time_to_live(&listener, 255).unwrap();
    assert!(TcpStream::connect_timeout(&tcp(&listener), Duration::from_millis(200)).is_err());
    let (accepted, _) = listener.accept().unwrap().unwrap();
    sys::filter::accept_packets(&accepted);
    drop(listener);
    early.write_all(b"ping").unwrap();
    let mut accepted = TcpStream::from(accepted);
    accepted.set_nonblocking(false).unwrap();
    accepted.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut text = [0; 4];
    accepted.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"ping");
}

#[test]
fn a_unix_socket_that_is_shut_down_keeps_its_queue_and_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let listener = listening(&path, EAGER);
    let _early = UnixStream::connect(&path).unwrap();
    listener.refuse_new().unwrap();
    assert_eq!(UnixStream::connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    assert!(listener.accept().unwrap().is_some());
    assert!(listener.accept().unwrap().is_none());
}

#[test]
fn a_stale_unix_socket_makes_way_and_a_live_one_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    assert!(!way(&path).unwrap());
    drop(bound(&path));
    assert_eq!(try_to_bind(&path, EAGER).unwrap_err().errno(), Some(libc::EADDRINUSE));
    assert!(way(&path).unwrap());
    assert!(!Path::new(&path).exists());
    let listener = listening(&path, Options { backlog: 0, ..EAGER });
    // Nor does one whose queue is full, which nobody can wait to find out: each attempt leaves something in it.
    for _ in 0..3 {
        assert_eq!(way(&path).unwrap_err().errno(), Some(libc::EADDRINUSE));
    }
    drop(listener);
}

#[test]
fn a_unix_socket_whose_file_was_replaced_is_not_listened_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    let first = bound(&path);
    assert!(way(&path).unwrap());
    let second = bound(&path);
    assert_eq!(first.listen().unwrap_err().errno(), Some(libc::EADDRINUSE));
    second.listen().unwrap();
}

#[test]
fn a_file_that_is_no_socket_is_left_alone_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = path_in(&directory);
    fs::write(&path, "data").unwrap();
    let error = way(&path).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ENOTSOCK));
    assert!(error.to_string().contains(&format!("{path}, which is a file but no socket")), "{error}");
    assert!(try_to_bind(&path, EAGER).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "data");
}

#[test]
fn the_umask_is_that_of_the_options_and_the_process_keeps_its_own() {
    let directory = tempfile::tempdir().unwrap();
    for (umask, mode) in [(0, 0o777), (0o077, 0o700), (0o117, 0o660)] {
        let path = path_in(&directory);
        let _bound = bound_with(&path, Options { umask, ..EAGER });
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        fs::remove_file(&path).unwrap();
    }
    let _held = UMASK.lock();
    let own = umask(Mode::from_bits_truncate(0o027));
    Listener::bind(path_in(&directory).parse().unwrap(), EAGER).unwrap();
    assert_eq!(umask(own), Mode::from_bits_truncate(0o027));
}

#[test]
fn a_backlog_may_be_larger_than_any_system_allows() {
    listening("127.0.0.1:0", Options { backlog: i32::MAX, ..EAGER });
    listening("127.0.0.1:0", Options { backlog: -1, ..EAGER });
}

#[test]
fn accepted_sockets_inherit_what_was_set() {
    let options = Options {
        receive_buffer: Some(20_000),
        send_buffer: Some(30_000),
        tcp_nodelay: false,
        tcp_nopush: true,
        ..EAGER
    };
    let listener = listening("127.0.0.1:0", options);
    let _client = TcpStream::connect(tcp(&listener)).unwrap();
    let (accepted, _) = listener.accept().unwrap().unwrap();
    let accepted = SockRef::from(&accepted);
    // The kernel doubles sizes, to have room for its own accounts.
    assert_eq!((accepted.recv_buffer_size().unwrap(), accepted.send_buffer_size().unwrap()), (40_000, 60_000));
    assert!(!accepted.tcp_nodelay().unwrap());
    assert!(accepted.tcp_cork().unwrap());
    assert!(accepted.keepalive().unwrap());
    assert!(SockRef::from(&listening("127.0.0.1:0", EAGER)).tcp_nodelay().unwrap());
}

#[test]
fn an_option_that_cannot_be_set_is_named() {
    let (pair, _other) = UnixStream::pair().unwrap();
    let address = Address::Tcp("127.0.0.1:80".parse().unwrap());
    let error = EAGER.tune(&OwnedFd::from(pair).into(), &address).unwrap_err();
    assert!(error.to_string().starts_with("setsockopt failed for TCP_NODELAY of 127.0.0.1:80:"), "{error}");
}

#[test]
fn a_silent_connection_is_kept_back_until_it_speaks() {
    let listener = listening("127.0.0.1:0", Options { tcp_defer_accept: 30, ..EAGER });
    let ports = [tcp(&listener).port()];
    assert!(!sys::half_open::any(&ports));
    let mut client = TcpStream::connect(tcp(&listener)).unwrap();
    assert!(listener.accept().unwrap().is_none());
    assert!(sys::half_open::any(&ports));
    client.write_all(b"x").unwrap();
    wait_until(|| listener.accept().unwrap().is_some());
    assert!(!sys::half_open::any(&ports));
}

#[test]
fn what_was_kept_back_comes_out_when_nothing_new_is_let_in() {
    let listener = listening("127.0.0.1:0", Options { tcp_defer_accept: 30, ..EAGER });
    let _client = TcpStream::connect(tcp(&listener)).unwrap();
    listener.refuse_new().unwrap();
    // The kernel asks the client once more, about a second later.
    wait_until(|| listener.accept().unwrap().is_some());
}

#[test]
fn ports_are_shared_by_those_who_all_say_so() {
    let sharing = Options { reuse_port: true, ..EAGER };
    let first = listening("127.0.0.1:0", sharing);
    let second = Listener::bind(first.address().clone(), sharing).unwrap();
    second.listen().unwrap();
    let error = Listener::bind(first.address().clone(), EAGER).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EADDRINUSE));
}

#[test]
fn queues_share_the_port_that_0_has_become() {
    let queues = Listener::bind_queues("127.0.0.1:0".parse().unwrap(), EAGER, 3).unwrap();
    let ports: Vec<u16> = queues.iter().map(|queue| tcp(queue).port()).collect();
    assert_eq!(ports, [ports[0]; 3]);
    assert_ne!(ports[0], 0);
    let further: Vec<bool> = queues.iter().map(|queue| queue.to_log().ends_with(" (SO_REUSEPORT)")).collect();
    assert_eq!(further, [false, true, true]);
}

#[test]
fn an_ipv6_socket_takes_ipv4_as_well_unless_told_otherwise() {
    for (only, taken) in [(false, true), (true, false)] {
        let listener = listening("[::]:0", Options { ipv6_only: Some(only), ..EAGER });
        let four: SocketAddr = format!("127.0.0.1:{}", tcp(&listener).port()).parse().unwrap();
        assert_eq!(TcpStream::connect(four).is_ok(), taken);
        if taken {
            let (_, peer) = listener.accept().unwrap().unwrap();
            assert_eq!(peer, Some("127.0.0.1".parse().unwrap()));
        }
    }
}

#[test]
fn an_inherited_socket_is_left_as_its_supervisor_has_it() {
    let supervisors = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = supervisors.local_addr().unwrap();
    let copy = supervisors.as_fd().try_clone_to_owned().unwrap();
    let listener = Listener::adopt(copy, Options { tcp_nodelay: false, ..EAGER }, false).unwrap();
    assert_eq!((listener.address().to_string(), listener.is_inherited()), (address.to_string(), true));
    listener.listen().unwrap();
    listener.refuse_new().unwrap();
    let client = TcpStream::connect(address).unwrap();
    let (_, peer) = listener.accept().unwrap().unwrap();
    assert_eq!(peer, Some(client.local_addr().unwrap().ip()));
    drop(listener);
    TcpStream::connect(address).unwrap();
}

#[test]
fn an_inherited_socket_that_does_not_listen_yet_begins_to() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    let listener = Listener::adopt(socket.into(), EAGER, false).unwrap();
    listener.listen().unwrap();
    TcpStream::connect(tcp(&listener)).unwrap();
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "it did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}
