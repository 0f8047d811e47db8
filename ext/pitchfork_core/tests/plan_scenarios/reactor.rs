//! The reactor: one, of the monitor's own, from when it is first wanted until everybody else has gone.

use pitchfork_core::children::{Child, Kind, Stage, Token};
use pitchfork_core::message::{Report, Text};
use pitchfork_core::plan::{Action, Event, Kill, Level, Phase, Settings, Signal};
use pitchfork_core::refork::STABLE_AFTER;

use crate::server::{Decided, HARD_TIMEOUT, SPAWN_TIMEOUT, Server};

/// The reactor is forked and ready, without a word before.
fn come_up(server: &mut Server, reactor: Token) -> Decided {
    server.fork(reactor);
    server.say(reactor, Report::Ready)
}

/// A server whose reactor has been at work for a while.
fn serving(workers: u32) -> (Server, Token) {
    let mut server = Server::serving(workers);
    let reactor = server.say(server.worker(0), Report::ReactorWanted).reactor().unwrap();
    assert!(come_up(&mut server, reactor).logged("reactor pid="));
    server.wait(STABLE_AFTER);
    (server, reactor)
}

/// The next one that is asked for.
fn next(server: &mut Server) -> Token {
    (0..100).find_map(|_| server.wait(100).reactor()).unwrap()
}

/// The hooks of the user that are to run.
fn hooks(decided: &Decided) -> usize {
    decided.0.iter().filter(|action| matches!(action, Action::Departed(_) | Action::HardTimeout(_))).count()
}

#[test]
fn it_is_started_when_it_is_first_wanted_and_only_once() {
    let mut server = Server::serving(2);
    assert!(server.wait(60_000).reactor().is_none());
    assert!(!server.state.has_reactor());
    let reactor = server.say(server.worker(0), Report::ReactorWanted).reactor().unwrap();
    assert!(server.say(server.worker(1), Report::ReactorWanted).reactor().is_none());
    server.fork(reactor);
    assert!(!server.state.has_reactor(), "it is not at work yet");
    assert!(server.say(reactor, Report::Ready).logged("reactor pid=104 ready"));
    assert!(server.state.has_reactor());
    assert!(server.say(server.worker(1), Report::ReactorWanted).reactor().is_none());
}

#[test]
fn it_is_replaced_at_once_when_it_dies_and_no_hook_hears_of_it() {
    let (mut server, reactor) = serving(1);
    let decided = server.exit(reactor);
    assert!(decided.reactor().is_some());
    assert_eq!(hooks(&decided), 0);
    assert!(decided.0.iter().any(|action| matches!(action, Action::LogEnd(child) if child.token == reactor)));
    assert!(!server.state.has_reactor());
}

#[test]
fn one_that_does_not_last_is_tried_again_after_growing_pauses() {
    let (mut server, reactor) = serving(1);
    let mut token = server.exit(reactor).reactor().unwrap();
    for (round, pause) in [100, 200, 400, 800].into_iter().enumerate() {
        server.fork(token);
        if round % 2 == 0 {
            server.say(token, Report::Ready);
        }
        assert!(server.exit(token).starts_nobody());
        assert!(server.wait(pause - 1).starts_nobody());
        assert_eq!(server.state.next_wake(server.now), Some(server.now + 1), "nothing else would wake the plan");
        token = server.wait(1).reactor().unwrap();
    }
    come_up(&mut server, token);
    server.wait(STABLE_AFTER);
    assert!(server.exit(token).reactor().is_some(), "one that has lasted ends the pauses");
}

#[test]
fn one_that_cannot_be_forked_is_tried_again() {
    let mut server = Server::serving(1);
    let mut token = server.say(server.worker(0), Report::ReactorWanted).reactor().unwrap();
    for pause in [100, 200, 400] {
        assert!(server.step(Event::Failed(token)).reactor().is_none());
        assert!(server.wait(pause - 1).reactor().is_none());
        token = server.wait(1).reactor().unwrap();
    }
}

#[test]
fn its_failures_are_nobody_elses() {
    let mut server = Server::of(Settings {
        workers: 2,
        hard_timeout: HARD_TIMEOUT,
        spawn_timeout: SPAWN_TIMEOUT,
        max_unavailable: None,
        service: false,
        max_spawn_errors: Some(1),
        slots: 16,
    });
    let mold = server.step(Event::Start).boot().unwrap();
    for (_, token, _) in server.come_up(mold).spawns() {
        server.come_up(token);
    }
    server.wait(STABLE_AFTER);
    let mut token = server.say(server.worker(0), Report::ReactorWanted).reactor().unwrap();
    for _ in 0..4 {
        server.fork(token);
        assert!(server.exit(token).starts_nobody());
        let worker = server.exit(server.worker(1)).spawn().1;
        server.come_up(worker);
        token = server.wait(STABLE_AFTER).reactor().unwrap();
    }
    // As many as end a server whose molds cannot be forked.
    for _ in 0..6 {
        server.step(Event::Failed(token));
        token = next(&mut server);
    }
    server.exit(mold);
    for worker in [0, 1].map(|nr| server.worker(nr)) {
        server.exit(worker);
    }
    let mold = server.wait(100).boot().unwrap();
    server.step(Event::Failed(mold));
    assert_eq!(server.state.phase(), Phase::Running);
}

#[test]
fn the_failures_of_others_do_not_hold_it_up() {
    let mut server = Server::serving(2);
    let worker = server.exit(server.worker(1)).spawn().1;
    server.fork(worker);
    server.exit(worker);
    assert!(server.say(server.worker(0), Report::ReactorWanted).reactor().is_some());
}

#[test]
fn those_that_are_slow_to_die_are_waited_for_when_they_have_all_its_lines() {
    let mut server = Server::serving(1);
    let mut token = server.say(server.worker(0), Report::ReactorWanted).reactor().unwrap();
    let first = token;
    for round in 0..2 {
        assert!(server.wait(SPAWN_TIMEOUT).logged("timed out during spawn, abandoning"));
        assert_eq!(server.fork(token).signalled(Kill::Kill), [token]);
        let decided = server.wait(400);
        assert!(!decided.logged("are taken"));
        match decided.reactor() {
            Some(next) => token = next,
            None => assert_eq!(round, 1),
        }
    }
    assert!(server.exit(first).reactor().is_some());
}

#[test]
fn its_success_does_not_end_the_pauses_of_the_others() {
    let mut server = Server::serving(3);
    let reactor = server.say(server.worker(0), Report::ReactorWanted).reactor().unwrap();
    let worker = server.exit(server.worker(1)).spawn().1;
    server.fork(worker);
    server.exit(worker);
    assert!(server.exit(server.worker(2)).starts_nobody());
    assert!(come_up(&mut server, reactor).starts_nobody());
    assert_eq!(server.wait(100).spawns().len(), 2);
}

#[test]
fn a_hanging_one_is_killed_at_once_and_no_hook_hears_of_it() {
    let (mut server, reactor) = serving(1);
    server.board.deadlines.insert(server.slot(reactor), server.now + 500);
    let decided = server.wait(1_000);
    assert_eq!(decided.signalled(Kill::Kill), [reactor], "not with the signal that the operator has chosen");
    assert_eq!((decided.signalled(Kill::Overdue), hooks(&decided)), (vec![], 0));
    assert!(decided.logged("timed out, killing"));
    assert!(!server.state.has_reactor());
    assert!(server.state.children().reactor().is_some(), "it may still count");
    server.board.deadlines.clear();
    assert!(server.exit(reactor).reactor().is_some());
}

#[test]
fn one_that_hangs_before_it_is_ready_is_killed() {
    let mut server = Server::serving(1);
    let reactor = server.say(server.worker(0), Report::ReactorWanted).reactor().unwrap();
    server.fork(reactor);
    assert_eq!(server.wait(SPAWN_TIMEOUT).signalled(Kill::Kill), [reactor]);
}

#[test]
fn reforks_leave_it_alone() {
    let (mut server, reactor) = serving(1);
    let worker = server.worker(0);
    let (_, decided) = server.promote();
    assert_eq!(decided.dismissed(), [worker], "the one worker goes for the proof, though the reactor lives");
    let proof = server.exit(worker).spawn().1;
    let old = server.mold();
    assert_eq!(server.come_up(proof).dismissed(), [old]);
    server.exit(old);
    assert_eq!(server.stage(reactor), Some(Stage::Ready));
}

#[test]
fn it_counts_as_no_worker() {
    let (server, reactor) = serving(1);
    assert!(server.state.is_complete() && !server.state.is_reforking());
    assert_eq!(server.state.children().workers().count(), 1);
    assert!(server.state.children().workers().all(|worker| worker.token != reactor));
}

#[test]
fn its_lines_are_kept_for_it() {
    let mut server = Server::serving(1);
    server.exit(server.worker(0));
    // Children that turn up when they have been given up, and are slow to die, keep theirs.
    let full = (0..10_000).any(|_| {
        let decided = server.wait(100);
        let late = |child: &&Child| child.stage == Stage::Abandoned && child.pid.is_none();
        for token in server.state.children().iter().filter(late).map(|child| child.token).collect::<Vec<_>>() {
            server.fork(token);
        }
        decided.logged("scoreboard are taken")
    });
    assert!(full);
    assert!(server.say(server.mold(), Report::ReactorWanted).reactor().is_some());
}

#[test]
fn it_is_told_with_the_others_and_ends_after_them() {
    let (mut server, reactor) = serving(1);
    let (mold, worker) = (server.mold(), server.worker(0));
    let decided = server.signal(Signal::Term);
    assert_eq!(decided.dismissed(), [mold, worker, reactor]);
    assert!(decided.0.iter().all(|action| !matches!(action, Action::Dismiss { drain: false, .. })));
    assert!(server.state.has_reactor(), "it still takes connections");
    assert_eq!(server.exit(mold).concluded(), None);
    let decided = server.exit(worker);
    assert_eq!((decided.concluded(), decided.exit()), (Some(reactor), None));
    assert_eq!(server.step(Event::Tick).concluded(), None, "once is enough");
    assert_eq!(server.exit(reactor).exit(), Some(0));
}

#[test]
fn one_that_dies_during_a_drain_is_replaced_as_long_as_others_are_there() {
    let (mut server, reactor) = serving(1);
    server.signal(Signal::Quit);
    let next = server.exit(reactor).reactor().unwrap();
    assert!(server.fork(next).dismissed().is_empty(), "it is not there yet");
    assert_eq!(server.say(next, Report::Ready).dismissed(), [next]);
    assert!(server.state.has_reactor());
    server.exit(server.mold());
    assert_eq!(server.exit(server.worker(0)).concluded(), Some(next));
    let decided = server.exit(next);
    assert!(decided.starts_nobody());
    assert_eq!(decided.exit(), Some(0));
}

#[test]
fn one_that_is_wanted_for_the_last_moments_is_started_and_takes_what_was_sent() {
    let mut server = Server::serving(1);
    server.signal(Signal::Quit);
    let reactor = server.say(server.worker(0), Report::ReactorWanted).reactor().unwrap();
    server.fork(reactor);
    server.exit(server.mold());
    let decided = server.exit(server.worker(0));
    assert_eq!((decided.concluded(), decided.exit()), (Some(reactor), None));
    server.say(reactor, Report::Ready);
    assert_eq!(server.exit(reactor).exit(), Some(0));
}

#[test]
fn none_is_started_when_the_server_stops_at_once() {
    let (mut server, reactor) = serving(1);
    server.signal(Signal::Int);
    assert!(server.exit(reactor).starts_nobody());
    assert!(server.say(server.worker(0), Report::ReactorWanted).starts_nobody());
}

#[test]
fn one_that_does_not_leave_does_not_keep_the_server() {
    let (mut server, reactor) = serving(1);
    server.signal(Signal::Quit);
    let begin = server.now;
    server.exit(server.mold());
    server.exit(server.worker(0));
    assert!(server.wait(HARD_TIMEOUT - 1).signalled(Kill::Kill).is_empty());
    assert_eq!(server.wait(1).signalled(Kill::Kill), [reactor]);
    assert_eq!(server.now, begin + HARD_TIMEOUT);
    assert_eq!(server.exit(reactor).exit(), Some(0));
}

#[test]
fn an_interrupt_reaches_it_by_its_channel() {
    let (mut server, reactor) = serving(1);
    let (mold, worker) = (server.mold(), server.worker(0));
    server.signal(Signal::Term);
    let decided = server.signal(Signal::Int);
    assert_eq!(decided.signalled(Kill::Int), [mold, worker], "it ignores that signal");
    let leave = |action: &Action| matches!(*action, Action::Dismiss { token, drain: false } if token == reactor);
    assert!(decided.0.iter().any(leave));
    assert!(server.wait(2_000).signalled(Kill::Kill).contains(&reactor));
}

#[test]
fn what_it_has_to_say_is_logged() {
    let (mut server, reactor) = serving(1);
    let text = Text::new("the reactor gives up");
    let decided = server.say(reactor, Report::Complaint(text));
    assert!(matches!(&decided.0[..], [Action::Log(Level::Error, line)] if line == "the reactor gives up"));
    let decided = server.say(reactor, Report::Remark(Text::new("answered 400")));
    assert!(matches!(&decided.0[..], [Action::Log(Level::Debug, line)] if line == "answered 400"));
}

#[test]
fn it_has_a_number_of_its_own() {
    assert_eq!(Kind::from_code(Kind::Reactor.code()), Kind::Reactor);
    let codes = [Kind::Mold, Kind::Service, Kind::Reactor].map(Kind::code);
    assert!(codes[0] > codes[1] && codes[1] > codes[2]);
}
