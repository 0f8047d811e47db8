//! The service: one, of the current mold, and nobody's concern but its own.

use pitchfork_core::children::{Kind, Stage, Token};
use pitchfork_core::plan::{Action, Event, Kill, Settings, Signal};

use crate::server::{Decided, HARD_TIMEOUT, SPAWN_TIMEOUT, Server};

/// The services asked for: token, and of whom.
fn services(decided: &Decided) -> Vec<(Token, Token)> {
    let service = |action: &Action| match *action {
        Action::Spawn { forker, token, kind: Kind::Service, .. } => Some((token, forker)),
        _ => None,
    };
    decided.0.iter().filter_map(service).collect()
}

/// A server of one worker with its service.
fn serving() -> (Server, Token) {
    let mut server = Server::of(Settings {
        workers: 1,
        hard_timeout: HARD_TIMEOUT,
        spawn_timeout: SPAWN_TIMEOUT,
        max_unavailable: None,
        service: true,
        max_spawn_errors: None,
        slots: 22,
    });
    let mold = server.step(Event::Start).boot().unwrap();
    let asked = server.come_up(mold);
    let (service, forker) = services(&asked)[0];
    assert_eq!(forker, mold);
    server.come_up(asked.spawn().1);
    assert!(server.come_up(service).logged("service gen=0 pid=103 ready"));
    server.wait(2_000);
    (server, service)
}

#[test]
fn it_is_forked_again_when_it_dies() {
    let (mut server, service) = serving();
    assert_eq!(services(&server.exit(service)).len(), 1);
}

#[test]
fn it_is_replaced_with_the_mold_and_counts_as_no_absence() {
    let (mut server, old) = serving();
    let worker = server.worker(0);
    let (mold, decided) = server.promote();
    assert_eq!(decided.dismissed(), [worker], "the one worker goes for the proof, though the service lives");
    let proof = server.exit(worker).spawn().1;
    let decided = server.come_up(proof);
    assert!(decided.dismissed().contains(&old));
    assert!(decided.logged("Sent SIGTERM to service gen=0"));
    let decided = server.exit(old);
    assert_eq!(services(&decided)[0].1, mold);
}

#[test]
fn its_failure_is_nobody_elses() {
    let (mut server, service) = serving();
    let mut token = services(&server.exit(service))[0].0;
    for pause in [100, 200, 400] {
        server.fork(token);
        let decided = server.exit(token);
        assert!(services(&decided).is_empty() && decided.starts_nobody() && decided.dismissed().is_empty());
        assert!(services(&server.wait(pause - 1)).is_empty());
        token = services(&server.wait(1))[0].0;
    }
    assert!(server.state.is_complete());
}

#[test]
fn an_overdue_one_is_killed_after_the_hook() {
    let (mut server, service) = serving();
    server.board.deadlines.insert(server.slot(service), server.now + 500);
    let decided = server.wait(1_000);
    assert!(decided.0.iter().any(|action| matches!(action, Action::HardTimeout(child) if child.token == service)));
    assert_eq!(decided.signalled(Kill::Overdue), [service]);
}

#[test]
fn it_leaves_at_a_shutdown() {
    let (mut server, service) = serving();
    assert!(server.signal(Signal::Term).dismissed().contains(&service));
    assert_eq!(server.stage(service), Some(Stage::Leaving));
}

#[test]
fn it_is_asked_for_before_the_workers() {
    let mut server = Server::of(Settings {
        workers: 4,
        hard_timeout: HARD_TIMEOUT,
        spawn_timeout: SPAWN_TIMEOUT,
        max_unavailable: None,
        service: true,
        max_spawn_errors: None,
        slots: 22,
    });
    let mold = server.step(Event::Start).boot().unwrap();
    let asked = server.come_up(mold);
    assert_eq!(
        (services(&asked).len(), asked.spawns().len()),
        (1, 1),
        "one of the two that a mold is asked for at once"
    );
}

#[test]
fn its_pauses_end_with_its_failures() {
    let (mut server, service) = serving();
    let (_, second, _) = server.signal(Signal::Ttin).spawn();
    server.come_up(second);
    let mut token = services(&server.exit(service))[0].0;
    for pause in [100, 200, 400] {
        server.fork(token);
        server.exit(token);
        server.wait(pause - 1);
        assert_eq!(server.state.next_wake(server.now), Some(server.now + 1), "nothing else would wake the plan");
        token = services(&server.wait(1))[0].0;
    }
    server.come_up(token);
    server.wait(2_000);
    token = services(&server.exit(token))[0].0;
    server.fork(token);
    server.exit(token);
    assert_eq!(services(&server.wait(100)).len(), 1, "the first pause again");
}
