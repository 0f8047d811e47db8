//! What can only be seen of a reactor that has a process to itself: its memory, its descriptors, its use of the processor.
//!
//! This program runs itself again as the reactor, which gets its ends of the queues as standard input and output, and its
//! end of the channel as standard error.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like a test")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getppid};
use pitchfork_core::children::{Kind, Token};
use pitchfork_core::http::Limits;
use pitchfork_core::message::Order;
use pitchfork_core::reactor::{Content, Counts, Parcel, Post, Queue, Queues, Rest, SendError, Settings, Then, run};
use pitchfork_core::scoreboard::Scoreboard;
use pitchfork_core::sys::channel::Channel;
use pitchfork_core::sys::clock;
use pitchfork_core::sys::memory::Memory;

const LIMIT: &str = "REACTOR_DESCRIPTORS";
/// Beyond this no file of the reactor grows, not even one in memory.
const LARGEST_FILE: usize = 600_000;
/// What a reactor leaves for others than its connections, and for what comes with the next packet.
const SPARE: usize = 16 + 3;
const PATIENCE: Duration = Duration::from_secs(60);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn main() -> ExitCode {
    if let Some(limit) = std::env::var(LIMIT).ok().and_then(|limit| limit.parse().ok()) {
        return be_the_reactor(limit);
    }
    let tests: [(&str, fn()); 8] = [
        ("a_connection_for_which_there_is_no_descriptor_is_an_error", no_descriptor),
        ("ten_thousand_idle_connections_cost_little_and_a_burst_is_given_back", ten_thousand),
        ("descriptors_that_run_out_cost_the_longest_idle_and_then_nobody", few_descriptors),
        ("clients_that_have_taken_all_make_room_for_those_that_wait", idle_late),
        ("what_was_sent_before_the_descriptor_is_needed_counts", displaced_late),
        ("what_was_sent_before_the_drain_counts", drained_late),
        ("a_request_that_cannot_be_sent_is_lost_and_no_other", unsendable),
        ("clients_that_send_on_do_not_keep_the_processor_busy", no_spinning),
    ];
    for (name, test) in tests {
        let began = Instant::now();
        test();
        println!("test {name} ... ok, {:?}", began.elapsed());
    }
    ExitCode::SUCCESS
}

fn be_the_reactor(limit: u64) -> ExitCode {
    setrlimit(Resource::RLIMIT_NOFILE, limit, limit).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, LARGEST_FILE as u64, LARGEST_FILE as u64).unwrap();
    SigSet::from(Signal::SIGXFSZ).thread_block().unwrap();
    let [deposits, ready] = [std::io::stdin().as_fd(), std::io::stdout().as_fd()]
        .map(|descriptor| Queue::from(descriptor.try_clone_to_owned().unwrap()));
    let channel = Channel::from(std::io::stderr().as_fd().try_clone_to_owned().unwrap());
    let board = Scoreboard::new(1).unwrap();
    board.assign(0, Token(1), Kind::Service, 0, None);
    let post = Post {
        token: Token(1),
        line: board.line(0),
        channel: &channel,
        monitor: getppid().as_raw(),
        death: None,
        patience: 200,
        log: &|_| {},
    };
    let minute = 60_000;
    let settings = Settings {
        limits: Limits::default(),
        header_timeout: minute,
        keepalive_timeout: minute,
        body_timeout: minute,
        min_rate: 0,
        write_timeout: minute,
        body_memory: 1 << 20,
        rewindable: true,
    };
    ExitCode::from(u8::try_from(run(post, &deposits, &ready, &settings, Counts::new().unwrap())).unwrap())
}

struct Reactor {
    process: Child,
    queues: Queues,
    monitor: Channel,
    listener: TcpListener,
}

impl Reactor {
    fn start(limit: usize) -> Self {
        let queues = Queues::new().unwrap();
        let (monitor, channel) = Channel::pair().unwrap();
        let copy = |queue: &Queue| Stdio::from(queue.as_fd().try_clone_to_owned().unwrap());
        let process = Command::new(std::env::current_exe().unwrap())
            .env(LIMIT, limit.to_string())
            .stdin(copy(&queues.deposits.1))
            .stdout(copy(&queues.ready.0))
            .stderr(Stdio::from(channel.as_fd().try_clone_to_owned().unwrap()))
            .spawn()
            .unwrap();
        let reactor = Self { process, queues, monitor, listener: TcpListener::bind("127.0.0.1:0").unwrap() };
        wait_until("the reactor is ready", || readable(&reactor.monitor));
        reactor
    }

    fn deposit(&self, socket: OwnedFd, bytes: &[u8], content: Content) {
        let bytes = bytes.to_vec();
        let parcel = Parcel { socket, peer: None, served: 1, since: clock::monotonic(), bytes, content };
        wait_until("there is room in the queue", || match self.queues.deposits.0.send(&parcel) {
            Ok(()) => true,
            Err(SendError::Full) => false,
            Err(error) => panic!("{error}"),
        });
    }

    /// A client whose connection waits in the reactor.
    fn client(&self, bytes: &[u8]) -> TcpStream {
        let client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        let (connection, _) = self.listener.accept().unwrap();
        connection.set_nonblocking(true).unwrap();
        self.deposit(connection.into(), bytes, Content::Waiting);
        client
    }

    fn take(&self) -> Parcel {
        wait_until("a request is handed over", || readable(&self.queues.ready.1));
        self.queues.ready.1.receive().unwrap().unwrap()
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }

    /// In kilobytes.
    fn private_memory(&self) -> u64 {
        Memory::of(self.process.id().cast_signed()).unwrap().private_dirty
    }

    /// Whether it waits for something. One that is busy does not, even if it waits for the processor.
    fn sleeps(&self) -> bool {
        self.state() == Some('S')
    }

    fn state(&self) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        stat.rsplit_once(')').unwrap().1.trim_start().chars().next()
    }

    /// Waits until it has seen to everything that has happened up to now.
    fn wait_for_sleep(&self) {
        wait_until("the reactor sleeps", || self.sleeps());
    }

    /// Has it find all at once what happens meanwhile.
    fn stopped(&self, meanwhile: impl FnOnce()) {
        let pid = Pid::from_raw(self.process.id().cast_signed());
        self.wait_for_sleep();
        kill(pid, Signal::SIGSTOP).unwrap();
        wait_until("it is stopped", || self.state() == Some('T'));
        meanwhile();
        kill(pid, Signal::SIGCONT).unwrap();
    }

    fn tell_to_leave(&self) {
        self.monitor.send(&Order::Leave { drain: true }.encode(), None).unwrap();
        self.monitor.send(&Order::Conclude.encode(), None).unwrap();
    }

    fn assert_leaves(mut self) {
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn no_descriptor() {
    let queues = Queues::new().unwrap();
    let (socket, mut client) = UnixStream::pair().unwrap();
    let socket = socket.into();
    let parcel = Parcel { socket, peer: None, served: 0, since: 0, bytes: Vec::new(), content: Content::Waiting };
    queues.deposits.0.send(&parcel).unwrap();
    queues.deposits.0.send(&parcel).unwrap();
    drop(parcel);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    // The lowest number that is free is the first that is too high.
    let free = std::fs::File::open("/dev/null").unwrap().as_raw_fd();
    setrlimit(Resource::RLIMIT_NOFILE, u64::try_from(free).unwrap(), hard).unwrap();
    let refused = queues.deposits.1.receive();
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    assert!(refused.unwrap_err().to_string().contains("no room"));
    let received = queues.deposits.1.receive().unwrap().unwrap();
    drop(received);
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "somebody else still has the connection");
}

fn ten_thousand() {
    const COUNT: usize = 10_000;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    if hard < COUNT as u64 + 200 {
        println!("skipped: {COUNT} connections need more descriptors than {hard}, the hard limit here");
        return;
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let reactor = Reactor::start(usize::try_from(hard).unwrap());
    let (descriptors, before) = (reactor.descriptors(), reactor.private_memory());
    let mut clients: Vec<TcpStream> = (0..COUNT).map(|_| reactor.client(b"")).collect();
    wait_until("all connections are there", || reactor.descriptors() == descriptors + COUNT);
    let idle = reactor.private_memory();
    println!("{COUNT} idle connections: {} kB more than {before} kB", idle - before);
    assert!(idle < 20_000, "{idle} kB");
    // A burst: some send most of a body that is kept in memory.
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n";
    for client in &mut clients[..2_000] {
        client.write_all(head.as_bytes()).unwrap();
        client.write_all(&vec![b'x'; 40_000]).unwrap();
    }
    wait_until("the bodies are there", || reactor.private_memory() > idle + 2_000 * 40);
    drop(clients.drain(..2_000));
    wait_until("the memory is given back", || reactor.private_memory() < idle + 2_000);
    // One among many is served at once, and everybody sees an orderly end.
    let chatty = clients.last_mut().unwrap();
    chatty.write_all(GET).unwrap();
    assert_eq!(reactor.take().bytes, GET);
    reactor.tell_to_leave();
    for client in &mut clients {
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    reactor.assert_leaves();
}

fn few_descriptors() {
    let reactor = Reactor::start(100);
    // The longest idle make room.
    let mut idle: Vec<_> = (0..150).map(|_| reactor.client(b"")).collect();
    for client in &mut idle[..50] {
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    idle.last_mut().unwrap().write_all(GET).unwrap();
    let last = reactor.take();
    drop((idle, last));
    // Who has begun a request does not: others wait in the queue until there is room.
    let mut begun: Vec<_> = (0..150).map(|_| reactor.client(&GET[..5])).collect();
    assert!(reactor.descriptors() <= 100);
    for client in begun.iter_mut().rev() {
        client.write_all(&GET[5..]).unwrap();
    }
    for _ in &begun {
        assert_eq!(reactor.take().bytes, GET);
    }
    reactor.tell_to_leave();
    reactor.assert_leaves();
}

fn idle_late() {
    const LIMIT: usize = 100;
    const LENGTH: usize = 300_000;
    let reactor = Reactor::start(LIMIT);
    let most = LIMIT - SPARE - reactor.descriptors();
    let readers: Vec<UnixStream> = (0..=most)
        .map(|_| {
            let (client, connection) = UnixStream::pair().unwrap();
            reactor.deposit(connection.into(), b"", response(LENGTH));
            client
        })
        .collect();
    let _waiting = reactor.client(GET);
    reactor.wait_for_sleep();
    assert!(readable(&reactor.queues.deposits.1), "there is room all the same");
    for mut client in &readers {
        client.read_exact(&mut vec![0; LENGTH]).unwrap();
    }
    assert_eq!(reactor.take().bytes, GET);
    reactor.tell_to_leave();
    reactor.assert_leaves();
}

fn displaced_late() {
    const LIMIT: usize = 500;
    let reactor = Reactor::start(LIMIT);
    let most = LIMIT - SPARE - reactor.descriptors();
    assert!(most > 256, "it is told of all of them at once");
    let mut clients: Vec<_> = (0..most).map(|_| reactor.client(b"")).collect();
    reactor.stopped(|| {
        let another = reactor.client(GET);
        for client in &mut clients {
            client.write_all(GET).unwrap();
        }
        clients.push(another);
    });
    for _ in &clients {
        assert_eq!(reactor.take().bytes, GET);
    }
    reactor.tell_to_leave();
    reactor.assert_leaves();
}

fn drained_late() {
    let reactor = Reactor::start(100);
    let mut clients = [reactor.client(b""), reactor.client(b"")];
    reactor.stopped(|| {
        reactor.monitor.send(&Order::Leave { drain: true }.encode(), None).unwrap();
        clients[0].write_all(GET).unwrap();
        clients[1].write_all(&GET[..5]).unwrap();
    });
    assert_eq!(reactor.take().bytes, GET);
    clients[1].write_all(&GET[5..]).unwrap();
    assert_eq!(reactor.take().bytes, GET);
    reactor.tell_to_leave();
    reactor.assert_leaves();
}

fn unsendable() {
    let reactor = Reactor::start(100);
    let length = LARGEST_FILE + 1;
    let mut client =
        reactor.client(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").as_bytes());
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(&vec![b'x'; length]).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    let _another = reactor.client(GET);
    assert_eq!(reactor.take().bytes, GET);
    reactor.tell_to_leave();
    reactor.assert_leaves();
}

fn no_spinning() {
    let reactor = Reactor::start(1_000);
    // A connection that the reactor has watched, and that is somebody else's now.
    let mut client = reactor.client(b"");
    client.write_all(GET).unwrap();
    let elsewhere = reactor.take();
    client.write_all(GET).unwrap();
    // Requests that find the queue full, from clients that have sent more and have left.
    let mut long = b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec();
    long.resize(12_000, b'x');
    long.extend_from_slice(b"\r\n\r\n");
    let clients: Vec<_> = (0..300)
        .map(|_| {
            let (mut client, connection) = UnixStream::pair().unwrap();
            connection.set_nonblocking(true).unwrap();
            reactor.deposit(connection.into(), &long, Content::Waiting);
            client.write_all(GET).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            client
        })
        .collect();
    // A response that nobody reads, to clients that have sent more; and one of them has said that this was all.
    let readers = [false, true].map(|ends| {
        let mut client = TcpStream::connect(reactor.listener.local_addr().unwrap()).unwrap();
        let (socket, _) = reactor.listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        reactor.deposit(socket.into(), b"", response(12 << 20));
        client.write_all(GET).unwrap();
        if ends {
            client.shutdown(std::net::Shutdown::Write).unwrap();
        }
        client
    });
    wait_until("the deposits are taken", || !readable(&reactor.queues.deposits.1));
    // It looks at the full queue fifty times a second, and sleeps meanwhile.
    let mut naps = 0;
    wait_until("the reactor sleeps", || {
        std::thread::sleep(Duration::from_millis(3));
        naps += u32::from(reactor.sleeps());
        naps == 20
    });
    drop((clients, readers, client, elsewhere));
    for _ in 0..300 {
        reactor.take();
    }
}

/// A response that is too long for the buffers of its connection.
fn response(length: usize) -> Content {
    Content::Response { rest: Rest { before: vec![b'x'; length], ..Rest::default() }, then: Then::KeepAlive }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn readable(descriptor: impl AsFd) -> bool {
    let mut watched = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    poll(&mut watched, PollTimeout::ZERO).unwrap() > 0
}
