//! From the start to the first worker.

use pitchfork_core::message::Report;
use pitchfork_core::plan::{Action, BOOT_TIMEOUT, Event, Kill, PREPARE_TIMEOUT, Signal};

use crate::server::Server;

#[test]
fn it_listens_when_the_mold_is_ready() {
    let (mut server, mold) = Server::started(1);
    let before = server.fork(mold);
    assert!(!before.0.iter().any(|action| matches!(action, Action::Listen)));
    let decided = server.come_up(mold);
    assert!(decided.0.iter().any(|action| matches!(action, Action::Listen)));
    assert_eq!(decided.current(), Some(mold));
}

#[test]
fn a_mold_has_two_orders_at_most() {
    let (mut server, mold) = Server::started(4);
    let asked = server.come_up(mold).spawns();
    assert_eq!(asked.iter().map(|(nr, ..)| *nr).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(server.fork(asked[0].1).spawn().0, 2, "one that is forked makes room");
}

#[test]
fn a_boot_that_fails_ends_the_server() {
    let (mut server, mold) = Server::started(2);
    server.fork(mold);
    assert_eq!(server.exit(mold).exit(), Some(1));
}

#[test]
fn a_boot_that_hangs_ends_the_server() {
    let (mut server, mold) = Server::started(2);
    server.fork(mold);
    let decided = server.wait(BOOT_TIMEOUT);
    assert_eq!(decided.signalled(Kill::Overdue), [mold]);
    assert_eq!(server.exit(mold).exit(), Some(1));
}

#[test]
fn a_monitor_that_cannot_fork_tries_again_and_gives_up_in_the_end() {
    let (mut server, mut mold) = Server::started(2);
    for _ in 0..4 {
        assert!(server.step(Event::Failed(mold)).starts_nobody(), "there is a pause");
        mold = server.wait(2_000).boot().unwrap();
    }
    assert_eq!(server.step(Event::Failed(mold)).exit(), Some(1));
}

#[test]
fn a_mold_that_never_finishes_preparing_is_killed() {
    let (mut server, mold) = Server::started(2);
    server.fork(mold);
    server.say(mold, Report::Preparing);
    assert_eq!(server.wait(PREPARE_TIMEOUT).signalled(Kill::Overdue), [mold]);
}

#[test]
fn a_refork_asked_for_during_boot_happens_when_there_is_a_worker() {
    let (mut server, mold) = Server::started(1);
    assert!(server.signal(Signal::Usr2).starts_nobody());
    let (_, worker, _) = server.come_up(mold).spawn();
    assert_eq!(server.come_up(worker).promotion().unwrap().0, worker);
}

#[test]
fn a_server_that_cannot_listen_ends() {
    let (mut server, mold) = Server::started(1);
    server.come_up(mold);
    assert!(server.step(Event::CannotListen).dismissed().contains(&mold));
}

#[test]
fn forks_that_failed_before_a_mold_came_up_are_forgotten() {
    let (mut server, mut mold) = Server::started(1);
    for _ in 0..2 {
        for _ in 0..4 {
            server.step(Event::Failed(mold));
            mold = server.wait(10_000).boot().unwrap();
        }
        server.come_up(mold);
        server.exit(mold);
        server.step(Event::Closed(server.worker(0)));
        mold = server.wait(10_000).boot().unwrap();
    }
}
