//! Goal: what the lab says happened is what the logs and captures show, and what a diagnosis says of it is right.
//! Method: six small conversations of the running kernel, recorded by `make truth`, whose captures stand beside the truth;
//! every damage, judged by the scorer. A live conversation is made where namespaces are permitted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use acklab_worlds::truth::damage::Damage;
use acklab_worlds::truth::hold::{Cause, Departure, Direction, Nagle, Release, Written};
use acklab_worlds::truth::score::{Sums, View, judge};
use acklab_worlds::truth::store::{Kept, is_kept_out};
use acklab_worlds::truth::vantage::{Frame, Seen, between};
use acklab_worlds::truth::{pairs, pattern, two};

fn recorded() -> Vec<Kept> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth");
    let folders = Kept::list(&root).expect("the recorded cases");
    assert_eq!(folders.len(), 6);
    folders.iter().map(|folder| Kept::read(folder).expect("a recorded case")).collect()
}

#[test]
fn undamaged_captures_from_anywhere_are_judged_rightly() {
    let mut sums = Sums::default();
    for kept in recorded() {
        for view in
            View::of(&kept.truth.case.name).into_iter().filter(|one| one.damage == Damage::Clean)
        {
            let outcome = judge(&kept, view).expect("a diagnosis");
            assert_eq!(outcome.verdict, outcome.stalled, "{} {}", outcome.case, outcome.view);
            sums.add(&outcome);
        }
    }
    let [recall, precision] = sums.recall_and_precision();
    println!("recall {recall:.3}, precision {precision:.3}, {sums:?}");
    assert!(sums.holds[0] > 300 && recall >= 0.93 && precision >= 0.95, "{recall} {precision}");
}

/// What the link loses behind a tap passes it no sooner than what it does not lose.
#[test]
fn a_tap_sees_lost_frames_after_their_share_of_the_way() {
    let mut lost = 0;
    for kept in recorded() {
        let server = kept.truth.directions[0].to;
        let of_client = |frame: &&Frame| Seen::of(frame, server).is_some_and(|seen| seen.of_client);
        let [client, _, other] = &kept.captures;
        let gone: Vec<&Frame> = other.iter().filter(of_client).step_by(10).skip(1).collect();
        let came: Vec<Frame> =
            other.iter().filter(|frame| !gone.contains(frame)).cloned().collect();
        let is_twin = |one: &Frame, other: &Frame| {
            let [one, other] = [one, other].map(|frame| Seen::of(frame, server));
            one.zip(other).is_some_and(|(one, other)| one.id == other.id && one.tcp == other.tcp)
        };
        let taken = |frame: &Frame, from: &[Frame]| {
            let left = from.iter().rfind(|one| is_twin(one, frame) && one.0 <= frame.0);
            left.map(|left| frame.0.since(left.0).as_nanos())
        };
        let ways = other.iter().filter(of_client).filter_map(|frame| taken(frame, client));
        let least = ways.min().expect("frames of the client") / 2;
        for frame in between([client, &came], server, 0.5, 1).iter().filter(of_client) {
            let took = taken(frame, client).expect("a frame of the client");
            assert!(took + 1_000 >= least, "{took} of {least} in {}", kept.folder.display());
            lost += u64::from(gone.iter().any(|gone| is_twin(gone, frame)));
        }
    }
    assert!(lost > 20, "{lost}");
}

/// Captures of one direction are judged by the whole (`make truth`): today's diagnosis finds nothing in them.
#[test]
fn damage_costs_holds_and_invents_none() {
    let mut sums = Sums::default();
    for kept in recorded() {
        for view in View::of(&kept.truth.case.name) {
            let outcome = judge(&kept, view).expect("a diagnosis");
            assert!(
                outcome.stalled != Some(false) || outcome.verdict != Some(true),
                "invented: {} {}",
                outcome.case,
                outcome.view
            );
            sums.add(&outcome);
        }
    }
    let [_, precision] = sums.recall_and_precision();
    assert!(precision >= 0.95, "{precision}");
}

/// Whatever a capture lacks, the seconds are between what the diagnosis says that they are: also where it begins while a write is
/// held, has stamps of a millisecond or noisy ones, or one direction alone.
#[test]
fn seconds_are_within_the_bounds_that_are_said() {
    let mut judged = 0;
    for kept in recorded() {
        for view in View::of(&kept.truth.case.name) {
            let outcome = judge(&kept, view).expect("a diagnosis");
            for one in outcome.directions.iter().filter(|one| one.stalled == Some(true) && one.said)
            {
                let ([low, high], [least, most]) = (one.seconds, one.between);
                let told = format!("{} {}: {low} to {high}", outcome.case, outcome.view);
                assert!(one.is_covered(), "{told} in {least} to {most}");
                assert!(one.width() < 1.0, "{told} says nothing: {least} to {most}");
                judged += 1;
            }
        }
    }
    assert!(judged >= 30, "{judged}");
}

#[test]
fn every_byte_written_left_once_and_nothing_is_held_without_nagle() {
    for kept in recorded() {
        for direction in &kept.truth.directions {
            let mut next = 0;
            for one in &direction.departures {
                assert_eq!(one.offset, next, "{}: a gap", kept.folder.display());
                assert!(one.written <= one.free && one.free <= one.left);
                assert!(one.arrived.is_none_or(|at| at + 1_000_000 > one.left));
                assert_eq!(one.release.is_some(), one.cause == Cause::Nagle);
                assert!(direction.nagle != Nagle::Off || one.cause != Cause::Nagle);
                next += u64::from(one.bytes);
            }
            let written: u64 = direction.writes.iter().map(|one| u64::from(one.bytes)).sum();
            assert_eq!(written, next, "{}", kept.folder.display());
            assert!(
                direction.writes.iter().all(|one| one.left.is_some_and(|left| left[0] <= left[1]))
            );
        }
    }
}

#[test]
fn the_delayed_ack_of_freebsd_holds_each_second_write_for_its_time() {
    let kept = recorded();
    let its =
        |kept: &&Kept| kept.truth.case.name.starts_with("split-header-think_nagle_freebsd-12.1");
    let direction = &kept.iter().find(its).expect("recorded").truth.directions[0];
    let held: Vec<_> =
        direction.departures.iter().filter(|one| direction.held_ms(one) > 0.0).collect();
    assert_eq!(held.len(), 40);
    for one in held {
        // 100 ms of the receiver and a round trip of 10 ms, less what the program waited before its second write.
        assert_eq!(one.release, Some(Release::DelayedAck));
        assert!(
            direction.held_ms(one) > 90.0 && direction.held_ms(one) < 112.0,
            "{}",
            direction.held_ms(one)
        );
        let kept_ms = one.ack_delay.expect("the ACK was seen") as f64 / 1e6;
        assert!((kept_ms - 100.0).abs() < 3.0, "{kept_ms}");
    }
}

#[test]
fn two_captures_align_whatever_the_clocks_and_tell_each_loss() {
    let room = tempfile::tempdir().expect("a folder");
    for kept in recorded() {
        for shift in two::SHIFTS {
            let aligned = two::judge(&kept, shift, room.path()).expect("a diagnosis");
            let name = kept.folder.display();
            assert!(
                aligned.aligned && aligned.within == [true; 2] && aligned.delays_within,
                "{name}: {aligned:?}"
            );
            assert!(aligned.error_ms.abs() <= aligned.half_ms + 0.05, "{name}: {aligned:?}");
            if shift.damage == Damage::Clean {
                assert_eq!(aligned.lost[0], aligned.lost[1], "{name}");
                assert_eq!(aligned.missed, 0, "{name}");
            } else {
                assert!(aligned.missed > 0 || kept.captures[2].len() < 100, "{name}: {aligned:?}");
            }
        }
    }
}

#[test]
fn damages_are_what_they_say_and_the_same_each_time() {
    let recorded = recorded();
    let kept = recorded.iter().max_by_key(|kept| kept.captures[0].len()).expect("cases");
    let (server, frames) = (kept.truth.directions[0].to, &kept.captures[0]);
    let clean = Damage::Clean.apply(frames, server, 1);
    for damage in Damage::ALL {
        let [once, twice] = [(); 2].map(|()| damage.apply(frames, server, 1));
        assert_eq!(once, twice, "{}", damage.name());
        let changes = !matches!(damage, Damage::Clean | Damage::Merged);
        assert_eq!(once != clean, changes, "{}", damage.name());
    }
}

#[test]
fn repetitions_and_changes_of_a_case_are_on_one_side() {
    for case in pairs::pairs(5) {
        let base = case.name.split("__").next().expect("a name");
        assert_eq!(is_kept_out(&case.name), is_kept_out(base));
    }
    let all = pattern::cases(6);
    let out = all.iter().filter(|case| is_kept_out(&case.name)).count();
    assert!(out * 5 > all.len() * 2 && out * 5 < all.len() * 3, "{out} of {}", all.len());
}

/// The maker, which cargo builds beside the tests.
fn maker() -> PathBuf {
    let own = std::env::current_exe().expect("this program");
    let target = own.parent().and_then(Path::parent).expect("target/debug/deps");
    target.join("examples/truth")
}

fn namespaces_are_permitted() -> bool {
    let permitted = Command::new("unshare")
        .args(["--net", "true"])
        .status()
        .is_ok_and(|status| status.success());
    if !permitted {
        eprintln!("SKIPPED: network namespaces are not permitted here");
    }
    permitted
}

#[test]
fn a_conversation_is_made_on_the_running_kernel() {
    if !namespaces_are_permitted() {
        return;
    }
    let room = tempfile::tempdir().expect("a folder");
    let only = "three-writes_nagle_linux_1000us";
    let make = Command::new(maker())
        .arg("make")
        .arg(room.path())
        .args(["--runs", "1", "--only", only])
        .output()
        .expect("the maker");
    assert!(make.status.success(), "{}", String::from_utf8_lossy(&make.stderr));
    let folders = Kept::list(room.path()).expect("folders");
    let kept = Kept::read(&folders[0]).expect("a case");
    let direction = &kept.truth.directions[0];
    assert_eq!((folders.len(), direction.writes.len()), (1, 150));
    let held = direction.departures.iter().filter(|one| direction.held_ms(one) >= 11.0).count();
    println!("{held} of 50 messages were held");
    assert!(held > 20, "{held}: the kernel's delayed ACK meets Nagle's algorithm");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "processes of the real world are waited for in real time"
)]
fn a_maker_that_is_killed_leaves_nothing() {
    if !namespaces_are_permitted() {
        return;
    }
    let room = tempfile::tempdir().expect("a folder");
    let mut make = Command::new(maker())
        .arg("make")
        .arg(room.path())
        .args(["--runs", "1", "--only", "idle-keepalive_nagle_linux_4000us"])
        .stderr(Stdio::null())
        .spawn()
        .expect("the maker");
    let maker = make.id();
    let children = || processes_of(maker);
    let began = Instant::now();
    // Two processes of either end: the first of its namespace, and the program.
    while children().len() < 4 && began.elapsed() < Duration::from_secs(20) {
        thread::yield_now();
    }
    let started = children();
    assert!(started.len() >= 4, "{started:?}");
    make.kill().expect("a running maker");
    make.wait().expect("its end");
    let began = Instant::now();
    while started.iter().any(|pid| is_alive(*pid)) {
        assert!(began.elapsed() < Duration::from_secs(10), "outlived the maker");
        thread::yield_now();
    }
}

/// Every process below `parent`.
fn processes_of(parent: u32) -> Vec<u32> {
    let mut all = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for pid in text.split_whitespace().filter_map(|word| word.parse().ok()) {
            all.push(pid);
            all.extend(processes_of(pid));
        }
    }
    all
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim_start().starts_with('Z') && !rest.is_empty())
}

/// A header of 200 bytes, and while it is unacknowledged a body of three segments: written in one piece, they leave as a
/// pacing timer lets them; written in small pieces, each waits until it is full.
#[test]
fn a_full_segment_is_held_until_its_last_byte_was_written() {
    let ms = |ms: u64| ms * 1_000_000;
    let write =
        |at: u64, offset: u64, bytes: u32| Written { at, offset, bytes, more: false, left: None };
    let filled = |k: u64, free: u64| Departure {
        offset: 200 + k * 1_000,
        bytes: 1_000,
        written: ms(1),
        free,
        left: ms(15 * (k + 1)),
        arrived: None,
        cause: Cause::Nagle,
        release: Some(Release::Filled),
        ack_delay: None,
    };
    let mut direction = Direction {
        from: "10.0.0.1:1".parse().expect("an address"),
        to: "10.0.0.2:2".parse().expect("an address"),
        receiver: "linux".into(),
        sender: "linux".into(),
        nagle: Nagle::On,
        mss: 1_000,
        first: 0,
        writes: vec![write(0, 0, 200), write(ms(1), 200, 3_000)],
        departures: vec![filled(0, ms(1)), filled(1, ms(15)), filled(2, ms(30))],
        sent_again: 0,
        lost: Vec::new(),
    };
    let held = |direction: &Direction| -> Vec<f64> {
        direction.departures.iter().map(|one| direction.held_ms(one)).collect()
    };
    assert_eq!(held(&direction), [0.0; 3]);
    direction.writes = (0..33).map(|i| write(ms(i * 3 / 2), i * 100, 100)).collect();
    assert!(
        held(&direction).iter().all(|held| (12.0..=15.0).contains(held)),
        "{:?}",
        held(&direction)
    );
}
