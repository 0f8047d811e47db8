//! The plan with a clock, and children that do what the test says.

use std::collections::BTreeMap;

use pitchfork_core::children::{Kind, Millis, Pid, Stage, Token};
use pitchfork_core::message::Report;
use pitchfork_core::plan::{Action, Event, Kill, Settings, Signal, State, View, step};
use pitchfork_core::refork::STABLE_AFTER;

pub const HARD_TIMEOUT: Millis = 20_000;
pub const SPAWN_TIMEOUT: Millis = 4_000;

#[derive(Default)]
pub struct Board {
    pub deadlines: BTreeMap<u32, Millis>,
    pub requests: BTreeMap<u32, u64>,
    pub unsafe_to_fork: Vec<u32>,
}

impl View for Board {
    fn deadline(&self, slot: u32) -> Millis {
        self.deadlines.get(&slot).copied().unwrap_or(0)
    }

    fn requests(&self, slot: u32) -> u64 {
        self.requests.get(&slot).copied().unwrap_or(0)
    }

    fn fork_safe(&self, slot: u32) -> bool {
        !self.unsafe_to_fork.contains(&slot)
    }
}

/// The plan with a clock, and with children that do what the test says.
pub struct Server {
    pub state: State,
    pub board: Board,
    pub now: Millis,
    next_pid: Pid,
}

/// What one or more steps have decided.
pub struct Decided(pub Vec<Action>);

impl Decided {
    /// The workers asked for: number, token, and of whom.
    pub fn spawns(&self) -> Vec<(u32, Token, Token)> {
        let spawn = |action: &Action| match *action {
            Action::Spawn { forker, token, kind: Kind::Worker(nr), .. } => Some((nr, token, forker)),
            _ => None,
        };
        self.0.iter().filter_map(spawn).collect()
    }

    pub fn spawn(&self) -> (u32, Token, Token) {
        let spawns = self.spawns();
        assert_eq!(spawns.len(), 1, "{:?}", self.0);
        spawns[0]
    }

    /// The worker that is to fork a mold, and the mold.
    pub fn promotion(&self) -> Option<(Token, Token)> {
        self.0.iter().find_map(|action| match *action {
            Action::Promote { forker, token, .. } => Some((forker, token)),
            _ => None,
        })
    }

    pub fn boot(&self) -> Option<Token> {
        self.0.iter().find_map(|action| match *action {
            Action::Boot { token, .. } => Some(token),
            _ => None,
        })
    }

    pub fn reactor(&self) -> Option<Token> {
        self.0.iter().find_map(|action| match *action {
            Action::StartReactor { token, .. } => Some(token),
            _ => None,
        })
    }

    /// Who is told to leave only when everybody else has gone.
    pub fn concluded(&self) -> Option<Token> {
        self.0.iter().find_map(|action| match *action {
            Action::Conclude(token) => Some(token),
            _ => None,
        })
    }

    pub fn dismissed(&self) -> Vec<Token> {
        let dismissed = |action: &Action| match *action {
            Action::Dismiss { token, .. } => Some(token),
            _ => None,
        };
        self.0.iter().filter_map(dismissed).collect()
    }

    pub fn signalled(&self, with: Kill) -> Vec<Token> {
        let signalled = |action: &Action| match *action {
            Action::Signal { token, kill, .. } if kill == with => Some(token),
            _ => None,
        };
        self.0.iter().filter_map(signalled).collect()
    }

    pub fn current(&self) -> Option<Token> {
        self.0.iter().find_map(|action| match *action {
            Action::Current(token) => Some(token),
            _ => None,
        })
    }

    pub fn exit(&self) -> Option<i32> {
        self.0.iter().find_map(|action| match *action {
            Action::Exit(status) => Some(status),
            _ => None,
        })
    }

    pub fn logged(&self, part: &str) -> bool {
        self.0.iter().any(|action| matches!(action, Action::Log(_, line) if line.contains(part)))
    }

    pub fn starts_nobody(&self) -> bool {
        self.spawns().is_empty() && self.promotion().is_none() && self.boot().is_none() && self.reactor().is_none()
    }
}

impl Server {
    pub fn with(workers: u32, max_unavailable: Option<u32>) -> Self {
        let settings = Settings {
            workers,
            hard_timeout: HARD_TIMEOUT,
            spawn_timeout: SPAWN_TIMEOUT,
            max_unavailable,
            service: false,
            max_spawn_errors: None,
            slots: 2 * (workers + 1) + 12,
        };
        Self::of(settings)
    }

    pub fn of(settings: Settings) -> Self {
        Self { state: State::new(settings), board: Board::default(), now: 1_000, next_pid: 100 }
    }

    /// A server that has just been started, and the token of its mold.
    pub fn started(workers: u32) -> (Self, Token) {
        let mut server = Self::with(workers, Some(1));
        let mold = server.step(Event::Start).boot().unwrap();
        (server, mold)
    }

    /// A server with all its workers, which have served for a while.
    pub fn serving(workers: u32) -> Self {
        let (mut server, mold) = Self::started(workers);
        let mut asked = server.come_up(mold).spawns();
        while let Some((_, token, _)) = asked.pop() {
            asked.extend(server.come_up(token).spawns());
        }
        assert!(server.state.is_complete());
        server.wait(STABLE_AFTER);
        server
    }

    pub fn step(&mut self, event: Event) -> Decided {
        Decided(step(&mut self.state, event, &self.board, self.now))
    }

    pub fn signal(&mut self, signal: Signal) -> Decided {
        self.step(Event::Signal(signal))
    }

    /// Lets time pass, a second at most between two ticks.
    pub fn wait(&mut self, time: Millis) -> Decided {
        let end = self.now + time;
        let mut all = Vec::new();
        while self.now < end {
            let next = self.state.next_wake(self.now).unwrap_or(end).min(end).min(self.now + 1_000);
            assert!(next > self.now, "the plan wants to be called again at once");
            self.now = next;
            all.extend(self.step(Event::Tick).0);
        }
        Decided(all)
    }

    pub fn say(&mut self, token: Token, report: Report) -> Decided {
        self.step(Event::Message(token, report))
    }

    pub fn fork(&mut self, token: Token) -> Decided {
        self.next_pid += 1;
        self.say(token, Report::Forked { pid: self.next_pid })
    }

    /// The child is forked, registers and is ready.
    pub fn come_up(&mut self, token: Token) -> Decided {
        let mut all = self.fork(token).0;
        all.extend(self.say(token, Report::Registered { pid: self.next_pid }).0);
        all.extend(self.say(token, Report::Ready).0);
        Decided(all)
    }

    pub fn exit(&mut self, token: Token) -> Decided {
        let pid = self.state.children().get(token).unwrap().pid.unwrap();
        self.step(Event::Exited { pid })
    }

    pub fn worker(&self, nr: u32) -> Token {
        let holder = |kind| kind == Kind::Worker(nr);
        self.state.children().workers().find(|worker| holder(worker.kind)).unwrap().token
    }

    pub fn mold(&self) -> Token {
        self.state.mold().unwrap().token
    }

    pub fn slot(&self, token: Token) -> u32 {
        self.state.children().get(token).unwrap().slot
    }

    pub fn stage(&self, token: Token) -> Option<Stage> {
        self.state.children().get(token).map(|child| child.stage)
    }

    /// Promotes a worker and lets the new mold come up. It then waits for the worker that it has to replace.
    pub fn promote(&mut self) -> (Token, Decided) {
        let (_, mold) = self.signal(Signal::Usr2).promotion().unwrap();
        let decided = self.come_up(mold);
        (mold, decided)
    }
}
