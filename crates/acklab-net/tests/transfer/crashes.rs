//! The receiver's machine crashes: a file system on a loop device is shut down as by a power cut, with its
//! journal committed (LOGFLUSH) or not, and mounted again.
//!
//! Whatever stands under a final name then has the right content, and the same command ends with all of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use acklab_net::transfer::receive::Verdict;
use acklab_net::transfer::send::End;

use crate::ends::{Receiver, Scratch, Sender, Told, errand, same, send_to};
use crate::mounts::Disk;

/// 45 files: small, of several chunks, and empty.
fn tree(scratch: &Scratch) -> PathBuf {
    for number in 0..40 {
        let len = [300_000, 10_000, 1_100_000, 1000][number % 4];
        scratch.file(&format!("top/a{}/{number:02}", number % 3), len, number as u64);
    }
    scratch.file("top/empty", 0, 0);
    scratch.file("top/zlarge", 9_000_000, 99);
    scratch.join("top")
}

/// How many files stand under their names; each must be what was sent.
fn check(from: &Path, to: &Path) -> usize {
    let mut count = 0;
    let Ok(entries) = fs::read_dir(to) else { return 0 };
    for entry in entries {
        let entry = entry.expect("an entry").path();
        let source = from.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            count += check(&source, &entry);
        } else {
            assert!(same(&source, &entry), "{} is not what was sent", entry.display());
            count += 1;
        }
    }
    count
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Midway,
    Complete,
}

fn power_cut(flags: &'static str, when: When) {
    let run = move || {
        let scratch = Scratch::new();
        let disk = match Disk::new(&scratch) {
            Ok(disk) => disk,
            Err(why) => {
                eprintln!("SKIPPED: a crash of the receiver's machine: {why}: not permitted here");
                return;
            }
        };
        let (from, folder) = (tree(&scratch), disk.at.join("in"));
        let mut receiver = Receiver::new(&folder, false);
        let mut errand = errand(&from, receiver.address);
        errand.rate = (when == When::Midway).then(|| "80mbit".parse().expect("a rate"));
        let mut sender = Sender::new(errand);
        let all = if when == When::Midway {
            let stored = |told| matches!(told, Told::Status(status) if status.stored >= 12);
            assert!(receiver.told.iter().any(stored), "it ended before");
            disk.cut(flags);
            sender.stop().expect("an outcome");
            false
        } else {
            let outcome = sender.outcome().expect("an outcome");
            assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
            disk.cut(flags);
            true
        };
        receiver.stop();
        drop(receiver);
        disk.mount_again();
        let count = check(&from, &folder.join("top"));
        assert!(!all || count == 42, "{count} of 42 files are there");
        assert!(flags != LOGFLUSH || count >= 12, "{count} files are there, and 12 were stored");
        let mut receiver = Receiver::new(&folder, true);
        let outcome = send_to(&from, receiver.address);
        assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
        assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
        assert_eq!(check(&from, &folder.join("top")), 42);
    };
    thread::spawn(run).join().expect("the test");
}

const LOGFLUSH: &str = "1";
const NOLOGFLUSH: &str = "2";

#[test]
fn a_crash_midway_leaves_right_files_and_a_resume_ends_with_all_of_them() {
    power_cut(LOGFLUSH, When::Midway);
}

#[test]
fn a_crash_midway_that_loses_the_journal_too_leaves_right_files() {
    power_cut(NOLOGFLUSH, When::Midway);
}

#[test]
fn a_crash_right_after_a_transfer_loses_nothing_of_it() {
    power_cut(LOGFLUSH, When::Complete);
}

#[test]
fn a_crash_right_after_a_transfer_that_loses_the_journal_too_loses_nothing_of_it() {
    power_cut(NOLOGFLUSH, When::Complete);
}
