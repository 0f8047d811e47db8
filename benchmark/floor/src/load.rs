//! A load: one thread keeps so many connections open, each for one request or for one after the other, and judges
//! every answer.

use std::fmt::{self, Write as _};
use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::address::Address;
use crate::quantile::quantile;

/// Nobody has to wait this long for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
const CHUNK: usize = 64 * 1024;

/// Requests of one kind.
#[derive(Debug)]
pub struct Kind {
    name: String,
    /// How many of all requests are of this kind, against the weights of the others.
    pub weight: u32,
    bytes: Vec<u8>,
}

impl Kind {
    /// From `NAME=WEIGHT=FILE`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '=');
        let (Some(name), Some(weight), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("{text} is not NAME=WEIGHT=FILE"));
        };
        let weight = weight.parse().map_err(|error| format!("weight {weight} of {name}: {error}"))?;
        let bytes = fs::read(file).map_err(|error| format!("cannot read {file}: {error}"))?;
        Ok(Self { name: name.to_owned(), weight, bytes })
    }
}

/// When no more requests are sent.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    Elapsed(Duration),
    Sent(u64),
}

/// What is asked of whom.
pub struct Load {
    pub address: Address,
    pub connections: usize,
    pub until: Until,
    pub kinds: Vec<Kind>,
    /// Whether a connection is good for more than one request.
    pub keep_alive: bool,
}

/// A connection with its request under way.
struct Exchange {
    socket: OwnedFd,
    kind: usize,
    began: Instant,
    answer: Vec<u8>,
}

impl Load {
    /// Sends all requests, and tells how long they took. The first request without a proper answer ends the load.
    pub fn run(&self) -> Result<Figures<'_>, String> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| format!("cannot make an epoll: {error}"))?;
        let mut turns = Turns::new(&self.kinds);
        let mut latencies = vec![Vec::new(); self.kinds.len()];
        let mut chunk = vec![0; CHUNK];
        let mut sent = 0;
        let began = Instant::now();
        let mut open = 0;
        let mut exchanges: Vec<Option<Exchange>> = (0..self.connections).map(|_| None).collect();
        let mut ready: Vec<usize> = (0..self.connections).collect();
        loop {
            for index in ready.drain(..) {
                let mut used = None;
                if let Some(mut exchange) = exchanges[index].take() {
                    let kind = exchange.kind;
                    let read = exchange.read(&mut chunk, self.keep_alive);
                    if !read.map_err(|reason| self.explain(kind, &reason))? {
                        exchanges[index] = Some(exchange);
                        continue;
                    }
                    latencies[kind].push(nanoseconds(exchange.began.elapsed()));
                    used = (self.keep_alive && !says_close(&exchange.answer)).then_some(exchange.socket);
                    open -= 1;
                }
                if !self.until.is_over(began.elapsed(), sent) {
                    let kind = turns.next();
                    let exchange = match used {
                        Some(socket) => self.go_on(kind, socket),
                        None => self.begin(kind, index, &epoll),
                    };
                    exchanges[index] = Some(exchange.map_err(|error| self.explain(kind, &error))?);
                    sent += 1;
                    open += 1;
                }
            }
            if open == 0 {
                return Ok(Figures { kinds: &self.kinds, latencies, took: began.elapsed() });
            }
            ready = wait(&epoll, self.connections)?;
        }
    }

    fn begin(&self, kind: usize, index: usize, epoll: &OwnedFd) -> Result<Exchange, Errno> {
        let began = Instant::now();
        let socket = self.address.connect().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        self.send(kind, &socket)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        epoll::add(epoll, &socket, EventData::new_u64(index as u64), EventFlags::IN)?;
        Ok(Exchange { socket, kind, began, answer: Vec::new() })
    }

    fn go_on(&self, kind: usize, socket: OwnedFd) -> Result<Exchange, Errno> {
        let began = Instant::now();
        // What no server has read yet has room in the kernel.
        self.send(kind, &socket)?;
        Ok(Exchange { socket, kind, began, answer: Vec::new() })
    }

    fn send(&self, kind: usize, socket: &OwnedFd) -> Result<(), Errno> {
        let mut rest = &self.kinds[kind].bytes[..];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(socket, rest)?..];
        }
        Ok(())
    }

    fn explain(&self, kind: usize, reason: &dyn fmt::Display) -> String {
        format!("request {} to {}: {reason}", self.kinds[kind].name, self.address)
    }
}

/// The connections that have something to read.
fn wait(epoll: &OwnedFd, connections: usize) -> Result<Vec<usize>, String> {
    let patience = rustix::event::Timespec::try_from(PATIENCE).map_err(|error| error.to_string())?;
    let mut events = Vec::with_capacity(connections);
    loop {
        match epoll::wait(epoll, spare_capacity(&mut events), Some(&patience)) {
            Ok(0) => return Err(format!("no answer within {} s", PATIENCE.as_secs())),
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(format!("cannot wait: {error}")),
        }
    }
    Ok(events.iter().filter_map(|event| usize::try_from(event.data.u64()).ok()).collect())
}

impl Exchange {
    /// Reads what is there. True at the end, which is that of the file or that of the answer, if the answer was as it
    /// should be.
    fn read(&mut self, chunk: &mut [u8], keep_alive: bool) -> Result<bool, String> {
        loop {
            if keep_alive && is_whole(&self.answer) {
                return judge(&self.answer).map(|()| true);
            }
            match rustix::io::read(&self.socket, &mut *chunk) {
                Ok(0) => return judge(&self.answer).map(|()| true),
                Ok(length) => self.answer.extend_from_slice(&chunk[..length]),
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(format!("{error} after {} bytes", self.answer.len())),
            }
        }
    }
}

/// Whether there is a head, and at least as much behind it as it promises.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    promised(head).is_none_or(|promised| answer.len() >= head.len() + "\r\n\r\n".len() + promised)
}

fn promised(head: &str) -> Option<usize> {
    field(head, "content-length")?.parse().ok()
}

/// Whether the server closes the connection behind this answer.
fn says_close(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    field(head, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

fn field<'h>(head: &'h str, wanted: &str) -> Option<&'h str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim()).next()
}

/// Status 200, and as many bytes as `Content-Length` promises.
fn judge(answer: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(answer);
    let (head, _) = text.split_once("\r\n\r\n").ok_or_else(|| format!("no head in {} bytes", answer.len()))?;
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(format!("the answer is {:?}", head.lines().next().unwrap_or_default()));
    }
    let promised = promised(head).ok_or("no Content-Length")?;
    let came = answer.len() - head.len() - "\r\n\r\n".len();
    if came == promised { Ok(()) } else { Err(format!("{came} of {promised} bytes came")) }
}

impl Until {
    fn is_over(self, elapsed: Duration, sent: u64) -> bool {
        match self {
            Self::Elapsed(limit) => elapsed >= limit,
            Self::Sent(limit) => sent >= limit,
        }
    }
}

/// Says which kind is next: at random, but the same in each run, so that all servers have the same load.
struct Turns<'a> {
    kinds: &'a [Kind],
    total: u64,
    state: u64,
}

impl<'a> Turns<'a> {
    fn new(kinds: &'a [Kind]) -> Self {
        Self { kinds, total: kinds.iter().map(|kind| u64::from(kind.weight)).sum(), state: 0x5eed }
    }

    /// By splitmix64.
    fn next(&mut self) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mut drawn = (mixed ^ (mixed >> 31)) % self.total;
        for (index, kind) in self.kinds.iter().enumerate() {
            match drawn.checked_sub(u64::from(kind.weight)) {
                Some(left) => drawn = left,
                None => return index,
            }
        }
        0 // never: `drawn` is below the sum of the weights
    }
}

/// How long the requests took, in nanoseconds, by kind.
pub struct Figures<'a> {
    kinds: &'a [Kind],
    latencies: Vec<Vec<u64>>,
    took: Duration,
}

impl fmt::Display for Figures<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&line("all", self.latencies.concat(), self.took))?;
        for (kind, latencies) in self.kinds.iter().zip(&self.latencies) {
            formatter.write_str(&line(&kind.name, latencies.clone(), self.took))?;
        }
        Ok(())
    }
}

fn line(name: &str, mut latencies: Vec<u64>, took: Duration) -> String {
    latencies.sort_unstable();
    let mut line = format!("{name}\t{}\t{:.6}", latencies.len(), took.as_secs_f64());
    for percent in [50, 99, 100] {
        let microseconds = Duration::from_nanos(quantile(&latencies, percent)).as_secs_f64() * 1e6;
        let _ = write!(line, "\t{microseconds:.1}");
    }
    line.push('\n');
    line
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, weight: u32) -> Kind {
        Kind { name: name.to_owned(), weight, bytes: Vec::new() }
    }

    #[test]
    fn an_answer_needs_its_status_and_its_length() {
        assert_eq!(judge(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"), Ok(()));
        for (answer, reason) in [
            (&b""[..], "no head in 0 bytes"),
            (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "the answer is \"HTTP/1.1 500 Oops\""),
            (b"HTTP/1.1 200 OK\r\n\r\nhi", "no Content-Length"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", "2 of 3 bytes came"),
        ] {
            assert_eq!(judge(answer), Err(reason.to_owned()));
        }
    }

    #[test]
    fn kinds_come_as_often_as_their_weights_say() {
        let kinds = [kind("quick", 90), kind("never", 0), kind("slow", 10)];
        let mut turns = Turns::new(&kinds);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[turns.next()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((800..1200).contains(&counts[2]), "{counts:?}");
    }

    #[test]
    fn a_malformed_kind_is_told_apart() {
        let message = Kind::parse("quick=often=/dev/null").unwrap_err();
        assert_eq!(message, "weight often of quick: invalid digit found in string");
        assert_eq!(Kind::parse("quick").unwrap_err(), "quick is not NAME=WEIGHT=FILE");
    }
}
