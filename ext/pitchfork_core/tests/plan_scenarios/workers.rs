//! Workers that crash, hang, or come late.

use pitchfork_core::children::{Stage, Token};
use pitchfork_core::message::Report;
use pitchfork_core::plan::{Action, Event, Kill, Phase, Settings, Signal};

use crate::server::{HARD_TIMEOUT, SPAWN_TIMEOUT, Server};

#[test]
fn a_number_is_given_away_only_when_its_holder_is_reaped() {
    let mut server = Server::serving(2);
    let worker = server.worker(1);
    assert!(server.step(Event::Closed(worker)).starts_nobody());
    assert_eq!(server.exit(worker).spawn().0, 1, "it was no failure to come up, so at once");
}

#[test]
fn a_worker_that_does_not_come_up_is_tried_again_after_growing_pauses() {
    let mut server = Server::serving(1);
    let worker = server.worker(0);
    let (_, mut token, _) = server.exit(worker).spawn();
    for pause in [100, 200, 400, 800] {
        server.fork(token);
        assert!(server.exit(token).starts_nobody());
        assert!(server.wait(pause - 1).starts_nobody());
        token = server.wait(1).spawn().1;
    }
}

#[test]
fn an_overdue_worker_is_killed_until_it_is_dead() {
    let mut server = Server::serving(2);
    let worker = server.worker(0);
    server.board.deadlines.insert(server.slot(worker), server.now + 500);
    let decided = server.wait(1_000);
    assert!(decided.0.iter().any(|action| matches!(action, Action::HardTimeout(child) if child.token == worker)));
    assert_eq!(decided.signalled(Kill::Overdue), [worker], "first with the signal that the operator wants");
    assert_eq!(server.wait(6_000).signalled(Kill::Kill), [worker]);
    server.board.deadlines.clear();
    assert_eq!(server.exit(worker).spawn().0, 0);
}

#[test]
fn a_worker_that_has_lost_its_channel_must_go() {
    let mut server = Server::serving(2);
    let worker = server.worker(0);
    server.step(Event::Closed(worker));
    assert_eq!(server.wait(HARD_TIMEOUT).signalled(Kill::Overdue), [worker]);
}

#[test]
fn a_child_that_hangs_in_a_fork_callback_is_killed() {
    let mut server = Server::serving(1);
    let (_, token, _) = server.exit(server.worker(0)).spawn();
    server.fork(token);
    assert_eq!(server.wait(SPAWN_TIMEOUT).signalled(Kill::Overdue), [token]);
}

#[test]
fn a_spawn_that_waits_for_another_one_has_time_for_both() {
    let (mut server, mold) = Server::started(2);
    let asked = server.come_up(mold).spawns();
    let (first, second) = (asked[0].1, asked[1].1);
    assert!(!server.wait(SPAWN_TIMEOUT - 1).logged("abandoning"));
    server.come_up(first);
    assert!(!server.wait(SPAWN_TIMEOUT).logged("abandoning"));
    assert_eq!(server.stage(second), Some(Stage::Requested));
    assert!(server.wait(1).logged("worker=1 gen=0 timed out during spawn, abandoning"));
}

#[test]
fn a_child_of_an_abandoned_spawn_is_killed_when_it_turns_up() {
    let mut server = Server::serving(1);
    let (_, late, _) = server.exit(server.worker(0)).spawn();
    let (_, token, _) = server.wait(SPAWN_TIMEOUT + 100).spawn();
    server.come_up(token);
    assert_eq!(server.come_up(late).signalled(Kill::Kill), [late]);
    assert_eq!(server.stage(late), Some(Stage::Abandoned));
    assert_eq!(server.stage(token), Some(Stage::Ready));
}

#[test]
fn a_child_that_turns_up_although_its_forker_failed_is_killed() {
    let mut server = Server::serving(1);
    let (_, token, forker) = server.exit(server.worker(0)).spawn();
    server.say(forker, Report::SpawnFailed { token, unsafe_to_fork: false });
    assert_eq!(server.wait(100).spawn().0, 0);
    assert_eq!(server.fork(token).signalled(Kill::Kill), [token]);
}

#[test]
fn a_channel_that_closes_before_a_pid_was_known_frees_the_number() {
    let mut server = Server::serving(1);
    let (_, token, _) = server.exit(server.worker(0)).spawn();
    server.step(Event::Closed(token));
    assert_eq!(server.stage(token), None);
    assert_eq!(server.wait(100).spawn().0, 0);
}

#[test]
fn a_spawn_that_could_not_be_ordered_keeps_no_line_of_the_scoreboard() {
    let mut server = Server::serving(4);
    for nr in 0..4 {
        server.exit(server.worker(nr));
    }
    let pending = server.state.children().workers().map(|worker| worker.token).collect::<Vec<_>>();
    for token in pending {
        server.step(Event::Failed(token));
    }
    for _ in 0..40 {
        for (_, token, _) in server.wait(100).spawns() {
            let decided = server.step(Event::Failed(token));
            assert!(!decided.logged("are taken"));
            assert_eq!(server.stage(token), None);
        }
    }
}

#[test]
fn a_pid_without_a_process_frees_the_number() {
    let mut server = Server::serving(1);
    assert_eq!(server.step(Event::Vanished(server.worker(0))).spawn().0, 0);
}

#[test]
fn their_number_follows_the_signals() {
    let mut server = Server::serving(2);
    let (nr, token, _) = server.signal(Signal::Ttin).spawn();
    assert_eq!(nr, 2);
    server.come_up(token);
    assert!(server.signal(Signal::Ttin).logged("can't add a worker"), "the scoreboard has no more lines");
    assert_eq!(server.signal(Signal::Ttou).dismissed(), [token]);
    assert_eq!(server.state.wanted(), 2);
}

#[test]
fn nobody_is_late_as_long_as_the_monitor_is() {
    let mut server = Server::serving(2);
    let (_, token, _) = server.exit(server.worker(0)).spawn();
    server.fork(token);
    // A hook for somebody else has taken so long.
    server.now += SPAWN_TIMEOUT;
    assert!(server.exit(server.worker(1)).signalled(Kill::Overdue).is_empty());
    server.say(token, Report::Ready);
    assert!(server.step(Event::Tick).signalled(Kill::Overdue).is_empty());
}

#[test]
fn a_stopped_machine_is_no_reason_to_kill_anybody() {
    let mut server = Server::serving(2);
    let (_, token, _) = server.exit(server.worker(0)).spawn();
    server.fork(token);
    server.board.deadlines.insert(server.slot(server.worker(1)), server.now + 2_000);
    server.now += 3_600_000;
    assert!(server.step(Event::Tick).signalled(Kill::Kill).is_empty());
    server.board.deadlines.clear();
    assert!(server.wait(SPAWN_TIMEOUT - 500).signalled(Kill::Kill).is_empty());
    assert_eq!(server.wait(500).signalled(Kill::Overdue), [token], "the rest of its time still counts");
}

#[test]
fn many_that_fail_together_are_spaced_out_until_one_comes_up() {
    let (mut server, mold) = Server::started(8);
    let mut asked = server.come_up(mold).spawns();
    for _ in 0..100 {
        while let Some((_, token, _)) = asked.pop() {
            asked.extend(server.fork(token).spawns());
            asked.extend(server.exit(token).spawns());
        }
        asked = server.wait(100).spawns();
    }
    let mut in_ten_seconds = 0;
    for _ in 0..100 {
        while let Some((_, token, _)) = asked.pop() {
            in_ten_seconds += 1;
            asked.extend(server.fork(token).spawns());
            asked.extend(server.exit(token).spawns());
        }
        asked = server.wait(100).spawns();
    }
    assert!((5..=20).contains(&in_ten_seconds), "{in_ten_seconds} forks in ten seconds");
}

#[test]
fn too_many_failures_in_a_row_end_the_server() {
    let settings = Settings {
        workers: 1,
        hard_timeout: HARD_TIMEOUT,
        spawn_timeout: SPAWN_TIMEOUT,
        max_unavailable: None,
        service: false,
        max_spawn_errors: Some(2),
        slots: 14,
    };
    let mut server = Server::of(settings);
    let mold = server.step(Event::Start).boot().unwrap();
    let mut token = server.come_up(mold).spawn().1;
    for _ in 0..2 {
        server.fork(token);
        server.exit(token);
        token = server.wait(1_000).spawn().1;
    }
    server.fork(token);
    let decided = server.exit(token);
    assert!(decided.logged("3 consecutive failures to spawn children, aborting"));
    assert_eq!(decided.dismissed(), [mold]);
    assert_eq!(server.exit(mold).exit(), Some(1));
}

#[test]
fn a_success_in_between_is_no_failure_in_a_row() {
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
    let asked = server.come_up(mold).spawns();
    let (mut broken, mut sound) = (asked[0].1, asked[1].1);
    for _ in 0..4 {
        server.fork(broken);
        server.exit(broken);
        server.come_up(sound);
        broken = server.wait(1_000).spawn().1;
        sound = server.exit(sound).spawn().1;
    }
    assert_eq!(server.state.phase(), Phase::Running);
}

/// A server that ends after the second failure in a row, and its mold.
fn impatient(workers: u32) -> (Server, Token) {
    let mut server = Server::of(Settings {
        workers,
        hard_timeout: HARD_TIMEOUT,
        spawn_timeout: SPAWN_TIMEOUT,
        max_unavailable: None,
        service: false,
        max_spawn_errors: Some(1),
        slots: 2 * workers + 12,
    });
    let mold = server.step(Event::Start).boot().unwrap();
    (server, mold)
}

#[test]
fn a_spawn_that_is_given_up_has_failed_once() {
    let (mut server, mold) = impatient(1);
    let (_, token, _) = server.come_up(mold).spawn();
    assert!(server.wait(SPAWN_TIMEOUT).logged("abandoning"));
    server.step(Event::Closed(token));
    assert_eq!(server.state.phase(), Phase::Running);
}

#[test]
fn a_mold_from_which_nobody_comes_up_is_no_success() {
    let (mut server, mold) = impatient(1);
    let (_, token, _) = server.come_up(mold).spawn();
    server.exit(mold);
    server.step(Event::Closed(token));
    let mold = server.wait(1_000).boot().unwrap();
    let (_, token, _) = server.come_up(mold).spawn();
    server.exit(mold);
    assert!(server.step(Event::Closed(token)).logged("2 consecutive failures to spawn children, aborting"));
}

#[test]
fn a_promotion_of_which_nothing_comes_is_no_failure_of_a_child() {
    let (mut server, mold) = impatient(1);
    let (_, worker, _) = server.come_up(mold).spawn();
    server.come_up(worker);
    for _ in 0..3 {
        let (_, mold) = server.signal(Signal::Usr2).promotion().unwrap();
        server.say(worker, Report::SpawnFailed { token: mold, unsafe_to_fork: false });
        server.step(Event::Closed(mold));
    }
    assert_eq!(server.state.phase(), Phase::Running);
}

#[test]
fn a_success_ends_the_pause_of_all_others() {
    let mut server = Server::serving(3);
    let [broken, sound, third] = [0, 1, 2].map(|nr| server.worker(nr));
    let broken = server.exit(broken).spawn().1;
    let sound = server.exit(sound).spawn().1;
    server.fork(broken);
    server.exit(broken);
    assert!(server.exit(third).starts_nobody());
    assert_eq!(server.come_up(sound).spawn().0, 2);
}

#[test]
fn what_the_last_mold_was_asked_for_does_not_hold_up_the_next_one() {
    let mut server = Server::serving(4);
    for nr in 0..3 {
        server.exit(server.worker(nr));
    }
    server.exit(server.mold());
    let (_, mold) = server.wait(100).promotion().unwrap();
    let (nr, _, forker) = server.come_up(mold).spawn();
    assert_eq!((nr, forker), (2, mold));
}

#[test]
fn the_pause_of_all_wakes_the_plan() {
    let mut server = Server::serving(2);
    let mut token = server.exit(server.worker(0)).spawn().1;
    for pause in [100, 200, 400] {
        server.fork(token);
        server.exit(token);
        token = server.wait(pause).spawn().1;
    }
    server.fork(token);
    server.exit(token);
    assert!(server.exit(server.worker(1)).starts_nobody());
    assert_eq!(server.state.next_wake(server.now), Some(server.now + 200), "its own pause would be 800");
    assert_eq!(server.wait(200).spawn().0, 1);
}
