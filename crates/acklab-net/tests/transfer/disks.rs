//! A disk that is full, at the start or midway, or that stands still.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;

use acklab_net::transfer::receive::Verdict;
use acklab_net::transfer::send::End;
use acklab_rudp::Code;

use crate::ends::{Receiver, Scratch, Sender, Told, content, errand, same, send_to};
use crate::mounts::{self, Disk};

/// Calls `test` with a scratch folder and a disk of 30 MB.
fn on_a_small_disk(test: impl FnOnce(&Scratch, PathBuf) + Send + 'static) {
    let run = move || {
        let scratch = Scratch::new();
        match mounts::private().and_then(|()| mounts::small(scratch.join("disk"), 30_000_000)) {
            Ok(disk) => test(&scratch, disk),
            Err(why) => eprintln!("SKIPPED: a full disk: {why}: not permitted here"),
        }
    };
    thread::spawn(run).join().expect("the test");
}

/// Another program takes all the room that is left.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("filler");
    let mut file = File::create(&path).expect("a file");
    while file.write_all(&[1; 4096]).is_ok() {}
    path
}

#[test]
fn what_came_before_a_disk_was_full_is_kept_and_the_rest_comes_when_there_is_room() {
    on_a_small_disk(|scratch, disk| {
        // With a hole, so that no room is reserved for it.
        let file = scratch.file("x", 0, 0);
        let source = File::options().write(true).open(&file).expect("the file");
        source.write_all_at(&content(24_000_000, 1), 1 << 20).expect("data behind a hole");
        let folder = disk.join("in");
        let mut receiver = Receiver::new(&folder, false);
        let mut errand = errand(&file, receiver.address);
        errand.rate = "120mbit".parse().ok();
        let mut sender = Sender::new(errand);
        sender.wait_for(12_000_000);
        let filler = fill(&disk);
        let outcome = sender.outcome().expect("an outcome");
        assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
        assert_eq!(outcome.status.progress.failures, 1);
        assert!(folder.join(".acklab-part").exists(), "its chunks stay");
        fs::remove_file(filler).expect("room");
        let outcome = send_to(&file, receiver.address);
        assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
        assert_eq!(outcome.status.progress.failures, 0);
        assert!(outcome.status.progress.resumed >= 12_000_000, "{outcome:?}");
        assert!(same(&file, &folder.join("x")));
        receiver.stop();
        assert!(!folder.join(".acklab-part").exists());
    });
}

#[test]
fn the_room_for_a_file_that_has_begun_is_its_own() {
    on_a_small_disk(|scratch, disk| {
        let file = scratch.file("x", 20_000_000, 2);
        let receiver = Receiver::new(&disk.join("in"), false);
        let mut errand = errand(&file, receiver.address);
        errand.rate = "120mbit".parse().ok();
        let mut sender = Sender::new(errand);
        sender.wait_for(3_000_000);
        fill(&disk);
        let outcome = sender.outcome().expect("an outcome");
        assert_eq!(outcome.status.progress.failures, 0, "{outcome:?}");
        assert!(same(&file, &disk.join("in/x")));
    });
}

#[test]
fn a_transfer_for_which_there_is_no_room_is_refused_before_anything_is_sent() {
    on_a_small_disk(|scratch, disk| {
        for number in 0..10 {
            scratch.file(&format!("top/{number}"), 5_000_000, number);
        }
        // A file of holes takes none.
        File::create(scratch.join("top/hole")).and_then(|it| it.set_len(1 << 30)).expect("a hole");
        let folder = disk.join("in");
        let receiver = Receiver::new(&folder, false);
        let outcome = send_to(&scratch.join("top"), receiver.address);
        let End::Closed { code: Code::Refused, text, by_peer: true } = &outcome.end else {
            panic!("{outcome:?}");
        };
        assert!(text.contains("bytes do not fit"), "{text}");
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0, "nothing is left");
        for number in 4..10 {
            fs::remove_file(scratch.join(&format!("top/{number}"))).expect("removed");
        }
        let outcome = send_to(&scratch.join("top"), receiver.address);
        assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
        assert_eq!((outcome.status.progress.failures, outcome.status.progress.stored), (0, 5));
    });
}

/// Both ends' user is told how far the transfer is five times a second, by their event loops.
const TOLD_IN_8_S: usize = 40;

#[test]
fn a_disk_that_stands_still_for_longer_than_a_sender_waits_costs_its_time_alone() {
    let run = || {
        let scratch = Scratch::new();
        let disk = match Disk::new(&scratch) {
            Ok(disk) => disk,
            Err(why) => {
                eprintln!("SKIPPED: a disk that stands still: {why}: not permitted here");
                return;
            }
        };
        let file = scratch.file("x", 60_000_000, 1);
        let mut receiver = Receiver::new(&disk.at.join("in"), true);
        let mut errand = errand(&file, receiver.address);
        errand.rate = "100mbit".parse().ok();
        let mut sender = Sender::new(errand);
        sender.wait_for(5_000_000);
        disk.freeze();
        receiver.told.try_iter().for_each(drop);
        let heard = sender.progress.iter().take(TOLD_IN_8_S).last();
        let status = |told: &Told| matches!(told, Told::Status(_));
        let alive = receiver.told.try_iter().filter(status).count();
        disk.thaw();
        assert!(heard.is_some_and(|confirmed| confirmed < 60_000_000), "{heard:?}");
        assert!(alive >= TOLD_IN_8_S / 4, "the receiver's loop stood still: {alive}");
        let outcome = sender.outcome().expect("an outcome");
        assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
        let said: Vec<String> = sender.told.try_iter().collect();
        assert!(said.is_empty(), "{said:?}");
        assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
        assert!(same(&file, &disk.at.join("in/x")));
    };
    thread::spawn(run).join().expect("the test");
}
