//! One history: bad weather and disasters, then calm, then the end.

use pitchfork_core::children::{Kind, Millis, Pid};
use pitchfork_core::plan::{Event, PREPARE_TIMEOUT, Settings, Signal, View};

use crate::actions::LONGEST_PAUSE;
use crate::process::{Life, SLOWEST_DEATH};
use crate::rng::Rng;
use crate::weather::Weather;
use crate::world::{Counts, Happening, TICK, World};

/// Something goes wrong on a larger scale.
#[derive(Clone, Copy, Debug)]
pub enum Disaster {
    /// Any process is killed.
    KillOne,
    /// Everything that is or becomes a mold is killed.
    KillMolds,
    /// All workers are killed at once.
    KillWorkers,
    /// Half of all processes are killed at once.
    KillHalf,
    /// The reactor is killed.
    KillReactor,
    /// No worker that there is now may be forked any more.
    Unsafe,
    /// The monitor is stopped for a while.
    StopMonitor(Millis),
    /// The machine is stopped for a while.
    StopMachine(Millis),
}

/// How long a boot may hang, or take, in the calm.
const BOOT: Millis = pitchfork_core::plan::BOOT_TIMEOUT;

/// Plays the history that belongs to a seed.
pub fn play(seed: u64) -> Counts {
    let mut rng = Rng::new(seed);
    let workers = size(&mut rng);
    let room = workers + rng.between(0, 4);
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let settings = Settings {
        workers: small(workers),
        hard_timeout: rng.between(1_000, 20_000),
        spawn_timeout: rng.between(500, 6_000),
        max_unavailable: if rng.chance(500) { None } else { Some(small(rng.between(0, workers))) },
        service: rng.chance(400),
        max_spawn_errors: if rng.chance(800) { None } else { Some(small(rng.between(1, 40))) },
        slots: small(2 * room + 12),
    };
    let weather = if rng.chance(100) { Weather::default() } else { Weather::random(&mut rng) };
    let mut world = World::new(settings, rng);
    world.change_weather(weather);
    let trouble = if world.rng.chance(100) { 0 } else { world.rng.between(100, 90_000) };
    world.announce(trouble);
    world.feed(Event::Start);
    let started = world.now;
    world.run_for(trouble);
    world.calm_down();
    world.settle("trouble");
    world.rest();
    if world.exit.is_none() && world.rng.chance(400) {
        world.refork();
    }
    world.shut_down();
    world.counts.simulated = world.now - started;
    world.counts
}

fn size(rng: &mut Rng) -> u64 {
    match rng.between(0, 999) {
        0..2 => rng.between(100, 1_000),
        2..50 => rng.between(10, 60),
        _ => rng.between(1, 8),
    }
}

impl World {
    /// Lays down what will happen from outside.
    fn announce(&mut self, trouble: Millis) {
        if trouble == 0 {
            return;
        }
        for _ in 0..self.rng.between(0, 6) {
            let gap = self.rng.between(5_000, 60_000);
            let disasters = [
                Disaster::KillOne,
                Disaster::KillOne,
                Disaster::KillMolds,
                Disaster::KillMolds,
                Disaster::KillWorkers,
                Disaster::KillHalf,
                Disaster::KillReactor,
                Disaster::Unsafe,
                Disaster::StopMonitor(gap),
                Disaster::StopMachine(gap),
            ];
            let at = self.rng.between(0, trouble);
            if let Some(disaster) = self.rng.pick(&disasters) {
                self.schedule(at, Happening::Disaster(disaster));
            }
        }
        for _ in 0..self.rng.between(0, 6) {
            let at = self.rng.between(0, trouble);
            let signals = [Signal::Usr2, Signal::Usr2, Signal::Ttin, Signal::Ttou];
            if let Some(signal) = self.rng.pick(&signals) {
                self.schedule(at, Happening::Signal(signal));
            }
        }
        if self.rng.chance(200) {
            let at = self.rng.between(0, trouble);
            self.announce_the_end(at);
        }
    }

    fn announce_the_end(&mut self, at: Millis) {
        for _ in 0..self.rng.between(1, 2) {
            let later = self.rng.between(0, 2_000);
            if let Some(signal) = self.rng.pick(&[Signal::Int, Signal::Quit, Signal::Term]) {
                self.schedule(at + later, Happening::Signal(signal));
            }
        }
    }

    pub fn strike(&mut self, disaster: Disaster) {
        let alive = self.processes.values().filter(|process| !process.dead);
        let pids = |kind: fn(&Kind) -> bool| -> Vec<Pid> {
            alive.filter(|process| kind(&process.kind)).map(|process| process.pid).collect()
        };
        let doomed = match disaster {
            Disaster::KillOne => {
                let all = pids(|_| true);
                self.rng.pick(&all).into_iter().collect()
            }
            Disaster::KillMolds => pids(|kind| *kind == Kind::Mold),
            Disaster::KillReactor => pids(|kind| *kind == Kind::Reactor),
            Disaster::KillWorkers => pids(|kind| *kind != Kind::Mold),
            Disaster::KillHalf => {
                let all = pids(|_| true);
                all.into_iter().filter(|_| self.rng.chance(500)).collect()
            }
            Disaster::Unsafe => {
                for line in &mut self.board.0 {
                    line.unsafe_to_fork = true;
                }
                Vec::new()
            }
            Disaster::StopMonitor(gap) => return self.stop(gap, false),
            Disaster::StopMachine(gap) => return self.stop(gap, true),
        };
        for pid in doomed {
            self.die(pid);
        }
    }

    fn run_for(&mut self, time: Millis) {
        let until = self.now + time;
        while self.exit.is_none() && self.now < until {
            self.advance();
        }
    }

    /// How long it may take until all is well, once nothing goes wrong any more: what hangs has to be found out, and
    /// everybody may have to be replaced, twice, one after another.
    fn patience(&self) -> Millis {
        let found_out = PREPARE_TIMEOUT
            + 2 * self.settings.hard_timeout
            + 8 * self.settings.spawn_timeout
            + 2 * SLOWEST_DEATH
            + 2 * LONGEST_PAUSE;
        let booting = self.processes.values().any(|process| process.booted && process.life != Life::Idle);
        found_out + 2 * 1_500 * Millis::from(self.state.wanted()) + if booting { BOOT } else { 0 }
    }

    /// Nothing new goes wrong. What did before comes to light: who is late, hangs in a request, or dies slowly.
    fn calm_down(&mut self) {
        while self.exit.is_none() && (self.announced > 0 || self.now < self.stopped_until) {
            self.advance();
        }
        self.change_weather(Weather::default());
        self.watch.calm = true;
        let aftermath = 4 * self.settings.spawn_timeout + self.settings.hard_timeout + SLOWEST_DEATH + TICK;
        self.run_for(aftermath);
    }

    fn settle(&mut self, after: &str) {
        let until = self.now + self.patience();
        while self.exit.is_none() && !self.is_settled() {
            if self.now > until {
                self.violated(&format!("all is not well long after {after}"));
            }
            self.advance();
        }
    }

    /// When all is well, nothing is done.
    fn rest(&mut self) {
        self.watch.quiet = true;
        self.run_for(4_000);
        if self.exit.is_none() {
            self.check_population();
        }
        self.watch.quiet = false;
    }

    /// Asks once, or several times in a row, for a refork, and perhaps for fewer workers while it is under way.
    fn refork(&mut self) {
        let possible =
            self.state.wanted() > 1 && self.state.children().workers().all(|worker| self.board.fork_safe(worker.slot));
        let before = self.watch.promotions;
        self.feed(Event::Signal(Signal::Usr2));
        let more = self.rng.between(0, 3);
        for _ in 0..more {
            let delay = self.rng.between(0, 20);
            self.run_for(delay);
            self.feed(Event::Signal(Signal::Usr2));
        }
        if possible && self.rng.chance(600) {
            for _ in 0..self.rng.between(1, u64::from(self.state.wanted()) - 1) {
                let delay = self.rng.between(0, 200);
                self.run_for(delay);
                self.feed(Event::Signal(Signal::Ttou));
            }
        }
        self.settle("a refork");
        self.rest();
        let made = self.watch.promotions - before;
        if possible && made != 1 + more.min(1) {
            self.violated(&format!("{} signals led to {made} promotions", 1 + more));
        }
        let generation = self.state.mold().map_or(0, |mold| mold.generation);
        if possible && u64::from(generation) < made {
            self.violated("a refork has come to nothing");
        }
    }

    fn shut_down(&mut self) {
        if self.exit.is_some() {
            return;
        }
        if self.rng.chance(500) {
            self.watch.calm = false;
            let weather = Weather::random(&mut self.rng);
            self.change_weather(weather);
            let time = self.rng.between(0, 5_000);
            self.run_for(time);
        }
        self.announce_the_end(0);
        while self.exit.is_none() {
            self.advance();
        }
    }
}
