//! The shared memory in which each process keeps its own line, and everybody reads all.
//!
//! A line is one cache line of atomics, so that a worker's store after each request disturbs nobody. The monitor
//! hands a line out with the token of the spawn; a child that finds another token there than its own is late, and
//! must exit.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::children::{Child, Kind, Millis, Pid, Token};
use crate::error::Error;
use crate::plan::View;
use crate::sys::shared;

const READY: u32 = 1;
const UNSAFE_TO_FORK: u32 = 2;
const MAIL: u32 = 4;

#[derive(Debug)]
#[repr(C, align(64))]
struct Header {
    current_mold: AtomicU64,
    wanted: AtomicU32,
    shutting_down: AtomicU32,
    reactor: AtomicU32,
}

/// One child's line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Line {
    token: AtomicU64,
    forker: AtomicU64,
    deadline: AtomicU64,
    requests: AtomicU64,
    pid: AtomicU32,
    generation: AtomicU32,
    kind: AtomicU32,
    flags: AtomicU32,
}

#[allow(unsafe_code)]
// SAFETY: a header is nothing but atomic integers, for which zero is a value.
unsafe impl shared::Shareable for Header {}

#[allow(unsafe_code)]
// SAFETY: a line is nothing but atomic integers, for which zero is a value.
unsafe impl shared::Shareable for Line {}

/// A handle on the shared lines; copies of it refer to the same memory.
#[derive(Clone, Copy, Debug)]
pub struct Scoreboard {
    header: &'static Header,
    lines: &'static [Line],
}

impl Scoreboard {
    /// Maps a scoreboard of so many lines, to be inherited by every process forked from now on.
    pub fn new(lines: u32) -> Result<Self, Error> {
        let header = shared::map::<Header>(1)?;
        Ok(Self { header: &header[0], lines: shared::map(lines as usize)? })
    }

    /// The line of this number, which comes from the plan or from an order of the monitor.
    #[must_use]
    pub fn line(&self, slot: u32) -> &'static Line {
        &self.lines[slot as usize]
    }

    /// Hands a line to a child that is about to be asked for.
    pub fn assign(&self, slot: u32, token: Token, kind: Kind, generation: u32, forker: Option<Token>) {
        let line = self.line(slot);
        line.deadline.store(0, Ordering::Relaxed);
        line.requests.store(0, Ordering::Relaxed);
        line.pid.store(0, Ordering::Relaxed);
        line.flags.store(0, Ordering::Relaxed);
        line.generation.store(generation, Ordering::Relaxed);
        line.forker.store(forker.map_or(0, |forker| forker.0), Ordering::Relaxed);
        line.kind.store(kind.code(), Ordering::Relaxed);
        line.token.store(token.0, Ordering::Release);
    }

    /// Takes a line back; its child, should it turn up, sees that nobody waits for it.
    pub fn revoke(&self, slot: u32) {
        let line = self.line(slot);
        line.token.store(0, Ordering::Release);
        line.flags.store(0, Ordering::Release);
        line.deadline.store(0, Ordering::Relaxed);
    }

    /// How many workers there shall be.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.header.wanted.load(Ordering::Relaxed)
    }

    /// Notes how many workers there shall be.
    pub fn set_wanted(&self, wanted: u32) {
        self.header.wanted.store(wanted, Ordering::Relaxed);
    }

    /// Whether the server is on its way down.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.header.shutting_down.load(Ordering::Acquire) != 0
    }

    /// Notes that the server is on its way down.
    pub fn set_shutting_down(&self) {
        self.header.shutting_down.store(1, Ordering::Release);
    }

    /// Whether there is a reactor that takes connections.
    #[must_use]
    pub fn has_reactor(&self) -> bool {
        self.header.reactor.load(Ordering::Acquire) != 0
    }

    /// Notes whether there is a reactor that takes connections.
    pub fn set_reactor(&self, is_there: bool) {
        self.header.reactor.store(u32::from(is_there), Ordering::Release);
    }

    /// Notes which mold workers come from.
    pub fn set_current_mold(&self, mold: Token) {
        self.header.current_mold.store(mold.0, Ordering::Release);
    }

    /// Whether the worker at this line comes from a mold that has been replaced.
    #[must_use]
    pub fn is_outdated(&self, slot: u32) -> bool {
        self.line(slot).forker.load(Ordering::Relaxed) != self.header.current_mold.load(Ordering::Acquire)
    }

    /// How many workers are ready and within their deadline.
    #[must_use]
    pub fn live_workers(&self, now: Millis) -> usize {
        self.lines.iter().filter(|line| line.is_live_worker(now)).count()
    }

    /// The numbers of the workers that are ready, in order.
    #[must_use]
    pub fn ready_workers(&self) -> Vec<u32> {
        let ready = self.lines.iter().filter(|line| line.is_ready_worker());
        let mut numbers: Vec<u32> = ready.map(|line| line.kind.load(Ordering::Relaxed)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The earliest deadline of any child, if one has any.
    #[must_use]
    pub fn first_deadline<'c>(&self, children: impl Iterator<Item = &'c Child>) -> Option<Millis> {
        children.map(|child| self.line(child.slot).deadline()).filter(|&deadline| deadline != 0).min()
    }
}

impl View for Scoreboard {
    fn deadline(&self, slot: u32) -> Millis {
        self.line(slot).deadline()
    }

    fn requests(&self, slot: u32) -> u64 {
        self.line(slot).requests()
    }

    fn fork_safe(&self, slot: u32) -> bool {
        !self.line(slot).is_unsafe_to_fork()
    }
}

impl Line {
    /// Whether this line still belongs to the spawn of this name.
    #[must_use]
    pub fn belongs_to(&self, token: Token) -> bool {
        self.token.load(Ordering::Acquire) == token.0
    }

    /// When the child must have given a sign of life, or finished what it does; 0 for never.
    #[must_use]
    pub fn deadline(&self) -> Millis {
        self.deadline.load(Ordering::Relaxed)
    }

    /// Sets the child's deadline.
    pub fn set_deadline(&self, at: Millis) {
        self.deadline.store(at, Ordering::Relaxed);
    }

    /// Moves the child's deadline; one that has none gets none.
    pub fn extend_deadline(&self, time: Millis) {
        let later = |deadline| (deadline != 0).then(|| deadline + time);
        let _ = self.deadline.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }

    /// How many requests the child has served.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts one request. Only the child itself writes this, so a load and a store do.
    pub fn count_request(&self) {
        self.requests.store(self.requests() + 1, Ordering::Relaxed);
    }

    /// The child's pid, once it has said so itself.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid.load(Ordering::Relaxed).cast_signed()
    }

    /// Notes the child's pid.
    pub fn set_pid(&self, pid: Pid) {
        self.pid.store(pid.cast_unsigned(), Ordering::Relaxed);
    }

    /// The child's generation.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether the child is at work.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.has(READY)
    }

    /// Notes that the child is at work.
    pub fn set_ready(&self) {
        self.flags.fetch_or(READY, Ordering::Release);
    }

    /// Whether the application said that this process must not be forked.
    #[must_use]
    pub fn is_unsafe_to_fork(&self) -> bool {
        self.has(UNSAFE_TO_FORK)
    }

    /// Notes that this process must not be forked.
    pub fn set_unsafe_to_fork(&self) {
        self.flags.fetch_or(UNSAFE_TO_FORK, Ordering::Release);
    }

    /// Tells a busy child that something waits on its channel, which saves it a system call after each request.
    pub fn set_mail(&self) {
        self.flags.fetch_or(MAIL, Ordering::Release);
    }

    /// Whether something waits on the channel.
    #[must_use]
    pub fn has_mail(&self) -> bool {
        self.has(MAIL)
    }

    /// Whether something waits on the channel; asking clears the note.
    #[must_use]
    pub fn take_mail(&self) -> bool {
        self.has(MAIL) && self.flags.fetch_and(!MAIL, Ordering::AcqRel) & MAIL != 0
    }

    fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Acquire) & flag != 0
    }

    fn is_ready_worker(&self) -> bool {
        self.token.load(Ordering::Acquire) != 0
            && matches!(Kind::from_code(self.kind.load(Ordering::Relaxed)), Kind::Worker(_))
            && self.is_ready()
    }

    fn is_live_worker(&self, now: Millis) -> bool {
        self.is_ready_worker() && self.deadline() > now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_cache_line() {
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
    }

    #[test]
    fn a_late_child_sees_that_its_line_was_taken_back() {
        let board = Scoreboard::new(4).unwrap();
        board.assign(2, Token(7), Kind::Worker(0), 1, Some(Token(3)));
        assert!(board.line(2).belongs_to(Token(7)));
        board.revoke(2);
        assert!(!board.line(2).belongs_to(Token(7)));
        board.assign(2, Token(8), Kind::Worker(0), 1, Some(Token(3)));
        assert!(!board.line(2).belongs_to(Token(7)));
    }

    #[test]
    fn only_ready_workers_within_their_deadline_are_live() {
        let board = Scoreboard::new(4).unwrap();
        for slot in 0..4 {
            let kind = [Kind::Mold, Kind::Worker(0), Kind::Worker(1), Kind::Worker(2)][slot as usize];
            board.assign(slot, Token(u64::from(slot) + 1), kind, 0, None);
            board.line(slot).set_deadline(if slot == 1 { 50 } else { 200 });
            if slot != 2 {
                board.line(slot).set_ready();
            }
        }
        assert_eq!(board.live_workers(100), 1);
        assert_eq!(board.live_workers(10), 2);
        assert_eq!(board.ready_workers(), [0, 2]);
        board.revoke(3);
        assert_eq!(board.ready_workers(), [0]);
    }

    #[test]
    fn mail_is_taken_once() {
        let board = Scoreboard::new(1).unwrap();
        let line = board.line(0);
        assert!(!line.take_mail());
        line.set_mail();
        assert!(line.has_mail());
        assert!(line.take_mail());
        assert!(!line.has_mail());
        assert!(!line.take_mail());
    }

    #[test]
    fn workers_of_another_mold_are_outdated() {
        let board = Scoreboard::new(1).unwrap();
        board.set_current_mold(Token(1));
        board.assign(0, Token(2), Kind::Worker(0), 0, Some(Token(1)));
        assert!(!board.is_outdated(0));
        board.set_current_mold(Token(3));
        assert!(board.is_outdated(0));
    }
}
