//! Replacing a mold, and the workers of the one before.

use pitchfork_core::message::Report;
use pitchfork_core::plan::{Event, Signal};
use pitchfork_core::refork::CONDITION_BACKOFF;

use crate::server::Server;

#[test]
fn the_warmest_worker_that_is_safe_to_fork_is_promoted() {
    let mut server = Server::serving(3);
    for (nr, requests) in [(0, 10), (1, 30), (2, 20)] {
        server.board.requests.insert(server.slot(server.worker(nr)), requests);
    }
    server.board.unsafe_to_fork.push(server.slot(server.worker(1)));
    let (forker, _) = server.signal(Signal::Usr2).promotion().unwrap();
    assert_eq!(forker, server.worker(2));
}

#[test]
fn the_old_mold_goes_when_a_worker_has_come_up_from_the_new_one() {
    let mut server = Server::serving(2);
    let old = server.mold();
    let first = server.worker(0);
    let (new, decided) = server.promote();
    assert_eq!(decided.dismissed(), [first], "the coldest makes room");
    let (nr, proof, forker) = server.exit(first).spawn();
    assert_eq!((nr, forker), (0, new));
    assert_eq!(server.mold(), old);
    let second = server.worker(1);
    let decided = server.come_up(proof);
    assert_eq!(decided.current(), Some(new));
    assert_eq!(decided.dismissed(), [old, second]);
    server.exit(old);
    let (_, last, _) = server.exit(second).spawn();
    server.come_up(last);
    assert!(server.state.is_complete() && !server.state.is_reforking());
}

#[test]
fn the_old_mold_carries_on_if_no_worker_comes_up_from_the_new_one() {
    let mut server = Server::serving(2);
    let old = server.mold();
    let first = server.worker(0);
    let (new, _) = server.promote();
    let (_, proof, _) = server.exit(first).spawn();
    server.fork(proof);
    let decided = server.exit(proof);
    assert_eq!(decided.dismissed(), [new]);
    let (nr, _, forker) = server.wait(100).spawn();
    assert_eq!((nr, forker), (0, old));
}

#[test]
fn the_old_mold_refills_what_crashes_before_the_new_one_is_ready() {
    let mut server = Server::serving(2);
    let old = server.mold();
    server.signal(Signal::Usr2).promotion().unwrap();
    assert_eq!(server.exit(server.worker(1)).spawn().2, old);
}

#[test]
fn a_mold_that_does_not_come_up_leaves_everything_as_it_was() {
    let mut server = Server::serving(2);
    let old = server.mold();
    let (_, new) = server.signal(Signal::Usr2).promotion().unwrap();
    server.fork(new);
    assert!(server.exit(new).logged("keeping the old mold"));
    assert_eq!(server.mold(), old);
    assert!(server.wait(30_000).starts_nobody());
}

#[test]
fn no_more_workers_are_missing_than_allowed() {
    let mut server = Server::with(10, Some(3));
    let mold = server.step(Event::Start).boot().unwrap();
    let mut asked = server.come_up(mold).spawns();
    while let Some((_, token, _)) = asked.pop() {
        asked.extend(server.come_up(token).spawns());
    }
    let (_, decided) = server.promote();
    let (_, proof, _) = server.exit(decided.dismissed()[0]).spawn();
    let decided = server.come_up(proof);
    assert_eq!(decided.dismissed().len(), 1 + 3, "the old mold and three workers");
    assert_eq!(server.state.unavailable(), 3);
}

#[test]
fn any_number_of_requests_during_a_refork_is_one_more() {
    let mut server = Server::serving(1);
    let (new, _) = server.promote();
    for _ in 0..3 {
        assert!(server.signal(Signal::Usr2).promotion().is_none());
    }
    let (_, proof, _) = server.exit(server.worker(0)).spawn();
    server.come_up(proof);
    let (forker, second) = server.wait(1).promotion().unwrap();
    assert_eq!(forker, proof);
    server.come_up(second);
    let (_, proof, _) = server.exit(proof).spawn();
    server.come_up(proof);
    assert!(server.wait(1_000).promotion().is_none());
    assert_ne!(server.mold(), new);
}

#[test]
fn a_condition_is_granted_now_and_then() {
    let mut server = Server::serving(2);
    let worker = server.worker(1);
    let (forker, mold) = server.say(worker, Report::ConditionMet).promotion().unwrap();
    assert_eq!(forker, worker);
    server.step(Event::Failed(mold));
    assert!(server.say(worker, Report::ConditionMet).promotion().is_none());
    server.wait(CONDITION_BACKOFF);
    assert!(server.say(worker, Report::ConditionMet).promotion().is_some());
}

#[test]
fn a_condition_is_not_granted_to_a_worker_that_may_not_be_forked() {
    let mut server = Server::serving(2);
    let (safe, other) = (server.worker(0), server.worker(1));
    server.board.unsafe_to_fork.push(server.slot(other));
    assert!(server.say(other, Report::ConditionMet).promotion().is_none());
    assert_eq!(server.say(safe, Report::ConditionMet).promotion().unwrap().0, safe, "and costs nobody else a turn");
}

#[test]
fn a_number_that_is_not_wanted_any_more_does_not_hold_up_the_proof() {
    let mut server = Server::serving(2);
    server.board.requests.insert(server.slot(server.worker(0)), 1);
    let (new, decided) = server.promote();
    assert_eq!(decided.dismissed(), [server.worker(1)]);
    assert_eq!(server.signal(Signal::Ttou).dismissed(), [server.worker(0)]);
    assert_eq!(server.exit(server.worker(0)).spawn().2, new);
}

#[test]
fn a_proof_whose_number_is_not_wanted_any_more_is_asked_for_again() {
    let mut server = Server::serving(2);
    server.board.requests.insert(server.slot(server.worker(0)), 1);
    let (new, _) = server.promote();
    let (_, proof, _) = server.exit(server.worker(1)).spawn();
    server.fork(proof);
    assert_eq!(server.signal(Signal::Ttou).dismissed(), [proof]);
    assert_eq!(server.exit(proof).dismissed(), [server.worker(0)], "that it exits is no failure of the new mold");
    let (nr, _, forker) = server.exit(server.worker(0)).spawn();
    assert_eq!((nr, forker), (0, new));
}
