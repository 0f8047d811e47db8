//! The monitor's table of children.
//!
//! A child enters the table when it is asked for, long before anybody knows its pid, so it is named by the
//! [`Token`] of its spawn. The pid is learned later, from whoever speaks first: the forker, the middle process of
//! the sibling fork, or the child itself.

use std::collections::BTreeMap;
use std::fmt;

/// Milliseconds on the monotonic clock.
pub type Millis = u64;

/// A process id, as the kernel gives it.
pub type Pid = i32;

/// Names one spawn for ever: tokens are never used twice in the life of a monitor, and 0 is never one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What a child is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Holds the warm application and forks workers.
    Mold,
    /// Serves requests under this number.
    Worker(u32),
    /// Runs what the user wants to run once per server, and serves no requests.
    Service,
    /// Holds the connections that are not ready for the application, and runs no Ruby.
    Reactor,
}

impl Kind {
    const MOLD: u32 = u32::MAX;
    const SERVICE: u32 = u32::MAX - 1;
    const REACTOR: u32 = u32::MAX - 2;

    /// One number for a kind, in messages and on the scoreboard: a worker's own, or one that no worker reaches.
    #[must_use]
    pub fn code(self) -> u32 {
        match self {
            Self::Mold => Self::MOLD,
            Self::Service => Self::SERVICE,
            Self::Reactor => Self::REACTOR,
            Self::Worker(nr) => nr,
        }
    }

    /// The kind of this [`Kind::code`].
    #[must_use]
    pub fn from_code(code: u32) -> Self {
        match code {
            Self::MOLD => Self::Mold,
            Self::SERVICE => Self::Service,
            Self::REACTOR => Self::Reactor,
            nr => Self::Worker(nr),
        }
    }
}

/// How far a child has come. Every stage but [`Stage::Ready`] has its deadline in [`Child::deadline`]; a ready child
/// keeps its own in the scoreboard, since only it knows when it starts and ends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Asked for; its pid is not known yet.
    Requested,
    /// Its pid is known; it boots the application or runs its fork hooks.
    Starting,
    /// A mold that collects garbage before it offers itself.
    Preparing,
    /// At work.
    Ready,
    /// Told to finish what it does and exit.
    Leaving,
    /// `SIGKILL` is on its way.
    Killed,
    /// Given up before its pid was known. It may still turn up, and is then killed.
    Abandoned,
}

/// One child.
#[derive(Clone, Debug)]
pub struct Child {
    /// The name of its spawn.
    pub token: Token,
    /// What it is for.
    pub kind: Kind,
    /// How many promotions lie behind it.
    pub generation: u32,
    /// Its line on the scoreboard.
    pub slot: u32,
    /// Who was asked to fork it; `None` means the monitor itself.
    pub forker: Option<Token>,
    /// Known from [`Stage::Starting`] on.
    pub pid: Option<Pid>,
    /// How far it has come.
    pub stage: Stage,
    /// When its stage must be over.
    pub deadline: Option<Millis>,
    /// When it became ready, if it ever did.
    pub ready_at: Option<Millis>,
}

impl Child {
    /// Whether it serves, or forks, right now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Whether it was told to go, politely or not: its exit is then no failure.
    #[must_use]
    pub fn is_dismissed(&self) -> bool {
        matches!(self.stage, Stage::Leaving | Stage::Killed | Stage::Abandoned)
    }

    /// Whether it was given up and nobody has ever heard of it.
    fn is_gone(&self) -> bool {
        self.stage == Stage::Abandoned && self.pid.is_none()
    }

    /// The worker's number, if it is a worker that still occupies it. An abandoned spawn occupies nothing.
    #[must_use]
    pub fn occupies(&self) -> Option<u32> {
        match self.kind {
            Kind::Worker(nr) if self.stage != Stage::Abandoned => Some(nr),
            _ => None,
        }
    }
}

/// The name that log lines give a process of this kind: `worker=0`, `mold`, `service`, `reactor`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mold => f.write_str("mold"),
            Self::Service => f.write_str("service"),
            Self::Reactor => f.write_str("reactor"),
            Self::Worker(nr) => write!(f, "worker={nr}"),
        }
    }
}

/// The name that log lines give a child: `worker=0 gen=1 pid=42`, `mold gen=1 pid=42`, `reactor pid=42`.
impl fmt::Display for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        // No promotion has anything to do with the reactor.
        if self.kind != Kind::Reactor {
            write!(f, " gen={}", self.generation)?;
        }
        match self.pid {
            Some(pid) => write!(f, " pid={pid}"),
            None => Ok(()),
        }
    }
}

/// All children, in the order in which they were asked for.
#[derive(Clone, Debug, Default)]
pub struct Children {
    by_token: BTreeMap<Token, Child>,
    by_pid: BTreeMap<Pid, Token>,
}

impl Children {
    /// Adds a child.
    pub fn insert(&mut self, child: Child) {
        self.by_token.insert(child.token, child);
    }

    /// Removes a child, and gives back what was known of it.
    pub fn remove(&mut self, token: Token) -> Option<Child> {
        let child = self.by_token.remove(&token)?;
        if let Some(pid) = child.pid {
            self.by_pid.remove(&pid);
        }
        Some(child)
    }

    /// Notes the pid of a child.
    pub fn learn_pid(&mut self, token: Token, pid: Pid) {
        if let Some(child) = self.by_token.get_mut(&token) {
            child.pid = Some(pid);
            self.by_pid.insert(pid, token);
        }
    }

    /// The child of this name.
    #[must_use]
    pub fn get(&self, token: Token) -> Option<&Child> {
        self.by_token.get(&token)
    }

    /// The child of this name, to be changed. Its pid is changed by [`Children::learn_pid`] only.
    pub fn get_mut(&mut self, token: Token) -> Option<&mut Child> {
        self.by_token.get_mut(&token)
    }

    /// The child with this pid.
    #[must_use]
    pub fn by_pid(&self, pid: Pid) -> Option<&Child> {
        self.by_pid.get(&pid).and_then(|token| self.by_token.get(token))
    }

    /// The pids of all children that have one.
    pub fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.by_pid.keys().copied()
    }

    /// All children.
    pub fn iter(&self) -> impl Iterator<Item = &Child> {
        self.by_token.values()
    }

    /// All children, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        self.by_token.values_mut()
    }

    /// The workers that occupy a number.
    pub fn workers(&self) -> impl Iterator<Item = &Child> {
        self.iter().filter(|child| child.occupies().is_some())
    }

    /// The service that occupies its place, if there is one. An abandoned spawn occupies nothing.
    #[must_use]
    pub fn service(&self) -> Option<&Child> {
        self.only(Kind::Service)
    }

    /// The reactor that occupies its place, if there is one.
    #[must_use]
    pub fn reactor(&self) -> Option<&Child> {
        self.only(Kind::Reactor)
    }

    fn only(&self, kind: Kind) -> Option<&Child> {
        self.iter().find(|child| child.kind == kind && child.stage != Stage::Abandoned)
    }

    /// Whether no child is left that is known to live.
    #[must_use]
    pub fn all_gone(&self) -> bool {
        self.iter().all(Child::is_gone)
    }

    /// Whether none but reactors are left.
    #[must_use]
    pub fn all_others_gone(&self) -> bool {
        self.iter().all(|child| child.kind == Kind::Reactor || child.is_gone())
    }
}
