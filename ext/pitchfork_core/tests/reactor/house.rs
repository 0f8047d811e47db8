//! A reactor, and what stands around it: the monitor's end of its channel, the queues, clients.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::getppid;
use pitchfork_core::children::{Kind, Millis, Token};
use pitchfork_core::http::Limits;
use pitchfork_core::message::{Order, Report};
use pitchfork_core::reactor::{Content, Count, Counts, Parcel, Post, Queues, SendError, Settings, run};
use pitchfork_core::scoreboard::{Line, Scoreboard};
use pitchfork_core::sys::channel::{Channel, Received};
use pitchfork_core::sys::clock;

/// However slow the machine, what is to happen has happened then.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often the monitor wants a sign of life.
pub const PULSE: Millis = 400;

/// Settings under which nothing is ever late.
pub fn settings() -> Settings {
    Settings {
        limits: Limits::default(),
        header_timeout: 60_000,
        keepalive_timeout: 60_000,
        body_timeout: 60_000,
        min_rate: 0,
        write_timeout: 60_000,
        body_memory: 1024,
        rewindable: true,
    }
}

/// A reactor at work.
pub struct House {
    pub queues: Arc<Queues>,
    pub monitor: Option<Channel>,
    pub counts: Counts,
    pub line: &'static Line,
    pub log: Arc<Mutex<Vec<String>>>,
    /// Readable at the monitor's "death".
    pub death: io::PipeWriter,
    reactor: Option<JoinHandle<i32>>,
    listener: TcpListener,
}

impl House {
    pub fn new(settings: Settings) -> Self {
        let queues = Arc::new(Queues::new().unwrap());
        let (monitor, child) = Channel::pair().unwrap();
        let counts = Counts::new().unwrap();
        let board = Scoreboard::new(1).unwrap();
        let line = board.line(0);
        board.assign(0, Token(1), Kind::Service, 0, None);
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lives, death) = io::pipe().unwrap();
        let reactor = std::thread::spawn({
            let (queues, log) = (Arc::clone(&queues), Arc::clone(&log));
            move || {
                let post = Post {
                    token: Token(1),
                    line,
                    channel: &child,
                    monitor: getppid().as_raw(),
                    death: Some(lives.as_fd()),
                    patience: PULSE,
                    log: &|line| log.lock().unwrap().push(line.to_owned()),
                };
                run(post, &queues.deposits.1, &queues.ready.0, &settings, counts)
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let house = Self { queues, monitor: Some(monitor), counts, line, log, death, reactor: Some(reactor), listener };
        assert_eq!(house.report(), Report::Ready);
        assert!(line.is_ready());
        house
    }

    pub fn report(&self) -> Report {
        let monitor = self.monitor.as_ref().unwrap();
        wait_until("the reactor speaks", || readable(monitor));
        match monitor.receive().unwrap() {
            Received::Message { bytes, len, .. } => Report::decode(&bytes[..len]).unwrap(),
            other => panic!("wanted a report, got {other:?}"),
        }
    }

    pub fn order(&self, order: Order) {
        self.monitor.as_ref().unwrap().send(&order.encode(), None).unwrap();
    }

    /// A client, and the server's end of its connection.
    pub fn connect(&self) -> (TcpStream, OwnedFd) {
        let client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let (connection, _) = self.listener.accept().unwrap();
        connection.set_nonblocking(true).unwrap();
        (client, connection.into())
    }

    /// A client whose connection waits in the reactor.
    pub fn client(&self, served: u32, bytes: &[u8]) -> TcpStream {
        let (client, connection) = self.connect();
        self.deposit(connection, served, bytes, Content::Waiting);
        client
    }

    pub fn deposit(&self, socket: OwnedFd, served: u32, bytes: &[u8], content: Content) {
        let peer = Some([127, 0, 0, 1].into());
        self.send(&Parcel { socket, peer, served, since: clock::monotonic(), bytes: bytes.to_vec(), content });
    }

    pub fn send(&self, parcel: &Parcel) {
        wait_until("there is room in the queue", || match self.queues.deposits.0.send(parcel) {
            Ok(()) => true,
            Err(SendError::Full) => false,
            Err(error) => panic!("{error}"),
        });
    }

    /// The next whole request, as a worker gets it.
    pub fn take(&self) -> Parcel {
        wait_until("a request is handed over", || readable(&self.queues.ready.1));
        self.queues.ready.1.receive().unwrap().unwrap()
    }

    pub fn wait_for(&self, count: Count, value: u64) {
        wait_until(&format!("{count:?} is {value}"), || self.counts.get(count) == value);
    }

    pub fn is_running(&self) -> bool {
        self.reactor.as_ref().is_some_and(|reactor| !reactor.is_finished())
    }

    /// Waits for the reactor's end; gives back its status.
    pub fn status(&mut self) -> i32 {
        let reactor = self.reactor.take().unwrap();
        wait_until("the reactor leaves", || reactor.is_finished());
        reactor.join().unwrap()
    }

    /// Lets the reactor leave, which must have lost nothing and have nothing to complain about.
    pub fn leave(self) {
        self.order(Order::Leave { drain: true });
        self.order(Order::Conclude);
        self.assert_well();
    }

    /// The same, whatever is still under way.
    pub fn leave_at_once(self) {
        self.order(Order::Leave { drain: false });
        self.assert_well();
    }

    fn assert_well(mut self) {
        assert_eq!(self.status(), 0);
        assert_eq!(self.counts.get(Count::Lost), 0);
        assert_eq!(*self.log.lock().unwrap(), [""; 0]);
    }
}

/// Waits for a condition, for as long as anybody would.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}: in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn readable(descriptor: impl AsFd) -> bool {
    let mut watched = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    poll(&mut watched, PollTimeout::ZERO).unwrap() > 0
}

/// All that comes until the orderly end of the connection: a reset is an error.
pub fn read_to_end(client: &mut TcpStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}

/// Answers as a worker does, and sees that the client of this connection gets it.
pub fn answer(parcel: Parcel, client: &mut TcpStream) {
    let mut connection = std::fs::File::from(parcel.socket);
    connection.write_all(b"answer").unwrap();
    let mut text = [0; 6];
    client.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"answer");
}
