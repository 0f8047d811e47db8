//! The way down.

use pitchfork_core::children::Stage;
use pitchfork_core::plan::{Action, Event, Kill, Phase, Signal};

use crate::server::{HARD_TIMEOUT, Server};

#[test]
fn everybody_finishes_and_the_last_one_ends_the_server() {
    let mut server = Server::serving(1);
    let (mold, worker) = (server.mold(), server.worker(0));
    let decided = server.signal(Signal::Term);
    assert_eq!(decided.dismissed(), [mold, worker]);
    assert!(decided.0.iter().any(|action| matches!(action, Action::StopListening)));
    assert!(server.exit(worker).starts_nobody());
    assert_eq!(server.exit(mold).exit(), Some(0));
    assert_eq!(server.state.phase(), Phase::Over);
}

#[test]
fn who_does_not_finish_is_killed() {
    let mut server = Server::serving(1);
    let (mold, worker) = (server.mold(), server.worker(0));
    server.signal(Signal::Quit);
    server.exit(mold);
    assert_eq!(server.wait(HARD_TIMEOUT).signalled(Kill::Overdue), [worker]);
    assert_eq!(server.exit(worker).exit(), Some(0));
}

#[test]
fn a_boot_is_broken_off() {
    let (mut server, mold) = Server::started(2);
    server.fork(mold);
    assert_eq!(server.signal(Signal::Term).signalled(Kill::Term), [mold]);
    assert_eq!(server.exit(mold).exit(), Some(0));
}

#[test]
fn a_hook_that_exits_ends_the_server_in_order_and_with_its_status() {
    let mut server = Server::serving(1);
    let (mold, worker) = (server.mold(), server.worker(0));
    let decided = server.step(Event::ExitAsked(3));
    assert!(decided.logged("exit in a hook, starting graceful shutdown"));
    assert_eq!(decided.dismissed(), [mold, worker]);
    server.exit(worker);
    assert_eq!(server.exit(mold).exit(), Some(3));
}

#[test]
fn an_interrupt_overtakes_a_graceful_shutdown() {
    let mut server = Server::serving(1);
    let (mold, worker) = (server.mold(), server.worker(0));
    server.signal(Signal::Term);
    assert_eq!(server.signal(Signal::Int).signalled(Kill::Int), [mold, worker]);
    assert_eq!(server.wait(2_000).signalled(Kill::Overdue), [mold, worker]);
}

#[test]
fn a_child_whose_pid_is_not_known_is_not_waited_for_at_an_interrupt() {
    let mut server = Server::serving(1);
    let mold = server.mold();
    let (_, token, _) = server.exit(server.worker(0)).spawn();
    server.signal(Signal::Int);
    assert_eq!(server.stage(token), Some(Stage::Abandoned));
    assert_eq!(server.exit(mold).exit(), Some(0));
}

#[test]
fn a_late_child_is_still_killed() {
    let mut server = Server::serving(1);
    let mold = server.mold();
    let (_, token, _) = server.exit(server.worker(0)).spawn();
    server.signal(Signal::Int);
    assert_eq!(server.fork(token).signalled(Kill::Kill), [token]);
    assert_eq!(server.exit(mold).exit(), None);
    assert_eq!(server.exit(token).exit(), Some(0));
}

#[test]
fn nobody_is_started_any_more() {
    let mut server = Server::serving(2);
    server.signal(Signal::Term);
    let usr2 = server.signal(Signal::Usr2);
    assert!(usr2.starts_nobody() && usr2.logged("can't refork"));
    assert!(server.signal(Signal::Ttin).starts_nobody());
    assert!(server.exit(server.worker(1)).starts_nobody());
    assert!(server.exit(server.mold()).starts_nobody());
}

#[test]
fn somebody_sees_to_the_queues_even_if_the_only_worker_is_just_being_replaced() {
    let mut server = Server::serving(1);
    let old = server.mold();
    server.promote();
    assert_eq!(server.stage(server.worker(0)), Some(Stage::Leaving));
    let decided = server.signal(Signal::Term);
    let (nr, drainer, forker) = decided.spawn();
    assert_eq!((nr, forker), (1, old));
    assert!(decided.dismissed().contains(&drainer));
}

#[test]
fn nobody_else_is_needed_while_a_worker_can_see_to_the_queues() {
    let mut server = Server::serving(2);
    server.exit(server.worker(0));
    assert!(server.signal(Signal::Term).starts_nobody());
}
