//! Time, the monitor's loop, and what its actions do to the processes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fmt;

use pitchfork_core::children::{Millis, Pid, Token};
use pitchfork_core::message::Order;
use pitchfork_core::plan::{Action, Event, Kill, Settings, Signal, State, View, step};

use crate::history::Disaster;
use crate::process::Process;
use crate::rng::Rng;
use crate::watch::Watch;
use crate::weather::Weather;
use crate::wire::Channel;

/// The monitor looks at the clock at least so often, as the scoreboard's deadlines wake nobody.
pub const TICK: Millis = 1_000;
/// How many steps are kept to be printed when one goes wrong.
const TRACE: usize = 60;

/// What is going to happen to somebody.
#[derive(Clone, Copy, Debug)]
pub enum Happening {
    /// A process does the next thing, if it has not been told otherwise since.
    Turn(Pid, u64),
    /// A report of this child reaches the monitor.
    Deliver(Token),
    /// The last holder of this child's end of its channel is gone.
    HangUp(Token),
    /// The monitor looks for a dead process; the second time, it takes strangers too.
    Reap(Pid, bool),
    /// Somebody else has reaped this child.
    Vanish(Token),
    /// The monitor could not start a child.
    Fail(Token),
    /// The monitor could not begin to listen.
    CannotListen,
    /// A signal reaches a process.
    Arrive(Pid, Token, Kill),
    /// A process ends.
    Die(Pid, Token),
    /// Somebody signals the monitor.
    Signal(Signal),
    /// Something goes wrong on a larger scale.
    Disaster(Disaster),
}

impl Happening {
    fn is_from_outside(self) -> bool {
        matches!(self, Self::Signal(_) | Self::Disaster(_))
    }
}

/// One line of the scoreboard.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    pub token: Option<Token>,
    pub disowned: bool,
    pub booted: bool,
    pub deadline: Millis,
    pub requests: u64,
    pub unsafe_to_fork: bool,
}

/// The scoreboard.
#[derive(Debug)]
pub struct Scoreboard(pub Vec<Line>);

impl Scoreboard {
    pub fn line(&self, slot: u32) -> Line {
        self.0.get(slot as usize).copied().unwrap_or_default()
    }

    pub fn line_mut(&mut self, slot: u32) -> &mut Line {
        &mut self.0[slot as usize]
    }
}

impl View for Scoreboard {
    fn deadline(&self, slot: u32) -> Millis {
        self.line(slot).deadline
    }

    fn requests(&self, slot: u32) -> u64 {
        self.line(slot).requests
    }

    fn fork_safe(&self, slot: u32) -> bool {
        !self.line(slot).unsafe_to_fork
    }
}

/// What a history was made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub steps: u64,
    pub deaths: u64,
    pub boots: u64,
    pub reforks: u64,
    pub reactors: u64,
    pub give_ups: u64,
    pub simulated: Millis,
}

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.deaths += other.deaths;
        self.boots += other.boots;
        self.reforks += other.reforks;
        self.reactors += other.reactors;
        self.give_ups += other.give_ups;
        self.simulated += other.simulated;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, deaths, boots, reforks, reactors, give_ups, simulated } = self;
        let hours = simulated / 3_600_000;
        write!(f, "{steps} steps, {deaths} deaths, {boots} boots, {reforks} promotions, {reactors} reactors, ")?;
        write!(f, "{give_ups} times given up, ")?;
        write!(f, "{hours} h of simulated time")
    }
}

struct Step {
    at: Millis,
    event: Event,
    actions: Vec<Action>,
}

/// Something that must hold did not.
pub struct Violation {
    pub what: String,
    pub account: String,
}

/// The monitor and everything around it.
pub struct World {
    pub now: Millis,
    pub rng: Rng,
    pub weather: Weather,
    pub settings: Settings,
    pub state: State,
    pub board: Scoreboard,
    pub channels: BTreeMap<Token, Channel>,
    pub processes: BTreeMap<Pid, Process>,
    pub free_pids: Vec<Pid>,
    pub next_pid: Pid,
    pub next_epoch: u64,
    /// Pids that somebody else has reaped.
    pub stolen: BTreeSet<Pid>,
    /// How long a worker waits for a request at most.
    pub pace: Millis,
    pub exit: Option<i32>,
    pub watch: Watch,
    pub counts: Counts,
    queue: BinaryHeap<Reverse<(Millis, u64, Entry)>>,
    next_entry: u64,
    /// How much is still to happen from outside.
    pub announced: usize,
    tick_at: Millis,
    pub stopped_until: Millis,
    trace: VecDeque<Step>,
}

/// A happening in the queue, which is ordered by time and age alone.
struct Entry(Happening);

impl PartialEq for Entry {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl World {
    pub fn new(settings: Settings, rng: Rng) -> Self {
        Self {
            now: 1_000,
            rng,
            weather: Weather::default(),
            settings,
            state: State::new(settings),
            board: Scoreboard(vec![Line::default(); settings.slots as usize]),
            channels: BTreeMap::new(),
            processes: BTreeMap::new(),
            free_pids: Vec::new(),
            next_pid: 100,
            next_epoch: 0,
            stolen: BTreeSet::new(),
            pace: 1_000 + 30 * Millis::from(settings.workers),
            exit: None,
            watch: Watch::default(),
            counts: Counts::default(),
            queue: BinaryHeap::new(),
            next_entry: 0,
            announced: 0,
            tick_at: 0,
            stopped_until: 0,
            trace: VecDeque::new(),
        }
    }

    pub fn schedule(&mut self, delay: Millis, happening: Happening) {
        self.announced += usize::from(happening.is_from_outside());
        self.next_entry += 1;
        self.queue.push(Reverse((self.now + delay, self.next_entry, Entry(happening))));
    }

    /// A length of time, which may be drawn out in bad weather.
    pub fn lasts(&mut self, low: Millis, high: Millis) -> Millis {
        let usual = self.rng.between(low, high);
        if self.rng.chance(self.weather.late) {
            usual + self.rng.between(0, 3 * self.settings.spawn_timeout)
        } else {
            usual
        }
    }

    /// Lets the next thing happen.
    pub fn advance(&mut self) {
        let due = self.queue.peek().map(|Reverse((at, ..))| *at);
        match due {
            Some(at) if at <= self.tick_at => {
                if let Some(Reverse((at, _, Entry(happening)))) = self.queue.pop() {
                    self.now = self.now.max(at);
                    self.happen(happening);
                }
            }
            _ => {
                self.now = self.now.max(self.tick_at) + self.rng.between(0, 2);
                self.feed(Event::Tick);
            }
        }
    }

    fn happen(&mut self, happening: Happening) {
        self.announced -= usize::from(happening.is_from_outside());
        let for_monitor = !matches!(
            happening,
            Happening::Turn(..) | Happening::Arrive(..) | Happening::Die(..) | Happening::Disaster(_)
        );
        if for_monitor && self.now < self.stopped_until {
            self.schedule(self.stopped_until - self.now, happening);
            return;
        }
        match happening {
            Happening::Turn(pid, epoch) => self.turn(pid, epoch),
            Happening::Deliver(token) => drop(self.hear(token)),
            Happening::HangUp(token) => self.hear_the_end(token),
            Happening::Reap(pid, again) => self.reap(pid, again),
            Happening::Vanish(token) => self.feed(Event::Vanished(token)),
            Happening::Fail(token) => self.feed(Event::Failed(token)),
            Happening::CannotListen => self.feed(Event::CannotListen),
            Happening::Arrive(pid, token, kill) => self.arrive(pid, token, kill),
            Happening::Die(pid, token) => {
                if self.processes.get(&pid).is_some_and(|process| process.token == token) {
                    self.die(pid);
                }
            }
            Happening::Signal(signal) => self.feed(Event::Signal(signal)),
            Happening::Disaster(disaster) => self.strike(disaster),
        }
    }

    /// Stops the monitor, and with it everybody else if the whole machine is stopped.
    pub fn stop(&mut self, gap: Millis, machine: bool) {
        if self.now < self.stopped_until {
            return;
        }
        self.stopped_until = self.now + gap;
        self.tick_at = self.tick_at.max(self.stopped_until);
        self.watch.stopped += gap;
        if machine {
            let queue = std::mem::take(&mut self.queue);
            self.queue = queue.into_iter().map(|Reverse((at, age, entry))| Reverse((at + gap, age, entry))).collect();
        }
    }

    /// One turn of the monitor's loop.
    pub fn feed(&mut self, event: Event) {
        if self.exit.is_some() {
            return;
        }
        self.before_step(event);
        let without = self.without_reactor(event);
        let actions = step(&mut self.state, event, &self.board, self.now);
        self.counts.steps += 1;
        let wake = self.state.next_wake(self.now);
        let tick_at = wake.unwrap_or(Millis::MAX).min(self.now + TICK).max(self.stopped_until);
        // Other events do not put it off.
        self.tick_at = if event == Event::Tick { tick_at } else { tick_at.min(self.tick_at) };
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        let performed = actions.clone();
        self.trace.push_back(Step { at: self.now, event, actions });
        self.check_independence(without, &performed);
        self.after_step(event, &performed);
        for action in &performed {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: &Action) {
        match *action {
            Action::Boot { token, slot } => {
                self.counts.boots += 1;
                self.open(token, slot);
                self.board.line_mut(slot).booted = true;
                self.boot(token, slot);
            }
            Action::StartReactor { token, slot } => {
                self.counts.reactors += 1;
                self.open(token, slot);
                self.start_reactor(token, slot);
            }
            Action::Spawn { forker, token, slot, kind, generation } => {
                self.open(token, slot);
                self.ask(forker, token, Order::Spawn { token, kind, slot, generation });
            }
            Action::Promote { forker, token, slot, generation } => {
                self.counts.reforks += 1;
                self.open(token, slot);
                self.ask(forker, token, Order::Promote { token, slot, generation });
            }
            Action::Dismiss { token, drain } => {
                // If the order does not get through, a signal says the same, but only to somebody whose pid is known.
                let pid = self.state.children().get(token).and_then(|child| child.pid);
                if (self.rng.chance(self.weather.send_fails) || !self.send(token, Order::Leave { drain }))
                    && let Some(pid) = pid
                {
                    self.schedule(0, Happening::Arrive(pid, token, Kill::Term));
                }
            }
            Action::Conclude(token) => {
                if !self.rng.chance(self.weather.send_fails) {
                    self.send(token, Order::Conclude);
                }
            }
            Action::Signal { token, pid, kill } => {
                let known = self.processes.get(&pid).is_some_and(|process| process.token == token);
                if !known && !self.stolen.contains(&pid) {
                    self.violated(&format!("a signal for {token:?} goes to the stranger {pid}"));
                }
                if known {
                    let delay = self.rng.between(0, 5);
                    self.schedule(delay, Happening::Arrive(pid, token, kill));
                } else {
                    self.schedule(0, Happening::Vanish(token));
                }
            }
            Action::Forget { token, slot, .. } => {
                let line = self.board.line_mut(slot);
                let owner = std::mem::take(line).token;
                if owner != Some(token) {
                    self.violated(&format!("line {slot} of {owner:?} is freed for {token:?}"));
                }
                self.stop_listening_to(token);
            }
            Action::Disown { slot } => self.board.line_mut(slot).disowned = true,
            Action::Exit(status) => self.exit = Some(status),
            Action::Listen => {
                if self.rng.chance(self.weather.cannot_listen) {
                    self.watch.deaf_listeners = true;
                    self.schedule(0, Happening::CannotListen);
                }
            }
            Action::HardTimeout(_)
            | Action::Departed(_)
            | Action::LogEnd(_)
            | Action::Current(_)
            | Action::StopListening
            | Action::Log(..) => {}
        }
    }

    /// Ends the history. Nothing is printed yet: one account of many failures is enough.
    pub fn violated(&self, what: &str) -> ! {
        std::panic::resume_unwind(Box::new(Violation {
            what: format!("at {} ms: {what}", self.now),
            account: self.account(),
        }))
    }

    fn account(&self) -> String {
        let mut lines = vec![format!("{:?}\n{:?}", self.settings, self.weather)];
        for step in &self.trace {
            lines.push(format!("{:>8}  {:?}", step.at, step.event));
            lines.extend(step.actions.iter().map(|action| format!("            -> {action:?}")));
        }
        let children = self.state.children().iter().map(|child| format!("in the table: {child:?}"));
        lines.extend(children.take(TRACE));
        let processes = self.processes.values().map(|process| format!("in the world: {process:?}"));
        lines.extend(processes.take(TRACE));
        lines.join("\n")
    }
}
