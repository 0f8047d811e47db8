//! When the mold is lost.

use pitchfork_core::message::Report;

use crate::server::Server;

#[test]
fn a_worker_is_promoted_and_its_mold_needs_no_proof() {
    let mut server = Server::serving(2);
    assert!(server.exit(server.mold()).starts_nobody());
    let (_, mold) = server.wait(100).promotion().unwrap();
    assert_eq!(server.come_up(mold).current(), Some(mold));
}

#[test]
fn each_worker_has_its_chance_before_the_application_is_booted() {
    let mut server = Server::serving(2);
    server.exit(server.mold());
    let (first, mold) = server.wait(100).promotion().unwrap();
    let refusal = Report::SpawnFailed { token: mold, unsafe_to_fork: true };
    let (second, mold) = server.say(first, refusal).promotion().unwrap();
    assert_ne!(first, second);
    let refusal = Report::SpawnFailed { token: mold, unsafe_to_fork: false };
    let mold = server.say(second, refusal).boot().unwrap();
    assert_eq!(server.come_up(mold).current(), Some(mold));
}

#[test]
fn a_worker_that_is_starting_is_waited_for() {
    let (mut server, mold) = Server::started(1);
    let (_, worker, _) = server.come_up(mold).spawn();
    server.fork(worker);
    server.exit(mold);
    assert!(server.wait(1_000).starts_nobody());
    assert_eq!(server.say(worker, Report::Ready).promotion().unwrap().0, worker);
}

#[test]
fn a_boot_that_fails_lets_the_workers_finish() {
    let mut server = Server::serving(2);
    server.board.unsafe_to_fork.extend([server.slot(server.worker(0)), server.slot(server.worker(1))]);
    server.exit(server.mold());
    let mold = server.wait(100).boot().unwrap();
    server.fork(mold);
    let decided = server.exit(mold);
    assert_eq!(decided.dismissed().len(), 2);
    assert_eq!(decided.exit(), None);
    server.exit(server.worker(0));
    assert_eq!(server.exit(server.worker(1)).exit(), Some(1));
}
