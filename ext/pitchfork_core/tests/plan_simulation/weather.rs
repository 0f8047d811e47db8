//! What goes wrong in a history, and how often.

use crate::rng::Rng;

/// How many times in a thousand each misfortune strikes when it could.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// A process dies at whatever it does next.
    pub crash: u64,
    /// A child dies right after it said that it is ready.
    pub crash_when_ready: u64,
    /// A child never returns from a fork callback.
    pub hang_in_callback: u64,
    /// A child never returns from its hooks, or from booting.
    pub hang_in_hooks: u64,
    /// A mold never finishes collecting.
    pub hang_in_preparation: u64,
    /// A worker never returns from a request.
    pub hang_in_request: u64,
    /// A worker or a mold hangs while it has nothing to do.
    pub hang_idle: u64,
    /// A worker drops its channel and does nothing more.
    pub lose_mind: u64,
    /// A child does not leave when it is told to.
    pub ignore_leave: u64,
    /// The middle process of a sibling fork is killed, before its fork or after it.
    pub middle_dies: u64,
    /// A worker turns out to be unsafe to fork when it is asked.
    pub refuse: u64,
    /// A forker cannot fork.
    pub fork_fails: u64,
    /// The monitor cannot send an order.
    pub send_fails: u64,
    /// The monitor cannot fork.
    pub boot_fork_fails: u64,
    /// The application does not boot.
    pub boot_fails: u64,
    /// A listener cannot begin to listen.
    pub cannot_listen: u64,
    /// Something takes far longer than it should.
    pub late: u64,
    /// Somebody else reaps a child of the monitor.
    pub stolen: u64,
    /// An overdue process lives on with the signal that the operator has chosen for it.
    pub survives_signal: u64,
    /// A killed process takes long to die.
    pub slow_death: u64,
    /// A request leaves its worker unsafe to fork.
    pub turn_unsafe: u64,
    /// A worker's condition for a refork is met after a request.
    pub condition: u64,
    /// A worker has a connection for the reactor after a request.
    pub slow_client: u64,
    /// The reactor dies right after it said that it is ready.
    pub reactor_crashes: u64,
    /// The reactor dies, or hangs, at its next sign of life.
    pub reactor_fails: u64,
}

impl Weather {
    /// The weather of one history: some misfortunes are frequent in it, others never happen.
    pub fn random(rng: &mut Rng) -> Self {
        let mut up_to = |most: u64| if rng.chance(550) { 0 } else { rng.between(1, most) };
        Self {
            crash: up_to(20),
            crash_when_ready: up_to(200),
            hang_in_callback: up_to(100),
            hang_in_hooks: up_to(60),
            hang_in_preparation: up_to(200),
            hang_in_request: up_to(20),
            hang_idle: up_to(10),
            lose_mind: up_to(10),
            ignore_leave: up_to(300),
            middle_dies: up_to(200),
            refuse: up_to(300),
            fork_fails: up_to(300),
            send_fails: up_to(200),
            boot_fork_fails: up_to(250),
            boot_fails: up_to(60),
            cannot_listen: up_to(20),
            late: up_to(60),
            stolen: up_to(200),
            survives_signal: up_to(500),
            slow_death: up_to(200),
            turn_unsafe: up_to(30),
            condition: up_to(50),
            slow_client: up_to(500),
            reactor_crashes: up_to(800),
            reactor_fails: up_to(500),
        }
    }
}
