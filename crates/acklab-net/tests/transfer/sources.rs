//! What is sent, and what cannot be: each is told to both users, with its cause.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread;

use acklab_net::transfer::directory::Directory;
use acklab_net::transfer::policy::Policy;
use acklab_net::transfer::receive::Verdict;
use acklab_net::transfer::send::End;
use nix::mount::{MsFlags, mount};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::ends::{Receiver, Scratch, Sender, errand, same};
use crate::mounts;

/// Calls `test` where it may mount file systems.
fn with_mounts(what: &str, test: impl FnOnce(&Scratch) + Send + 'static) {
    let run = || {
        let scratch = Scratch::new();
        mounts::private().map(|()| test(&scratch))
    };
    if let Err(why) = thread::spawn(run).join().expect("the test") {
        eprintln!("SKIPPED: {what}: {why}: not permitted here");
    }
}

#[test]
fn why_a_file_was_refused_is_told_to_the_sender_though_it_is_the_last_one() {
    let scratch = Scratch::new();
    let file = scratch.file("x", 1000, 1);
    fs::create_dir_all(scratch.join("in/x/full")).expect("a folder in its place");
    let mut receiver = Receiver::new(&scratch.join("in"), true);
    let mut sender = Sender::new(errand(&file, receiver.address));
    let outcome = sender.outcome().expect("an outcome");
    assert_eq!(outcome.status.progress.failures, 1, "{outcome:?}");
    let told: Vec<String> = sender.told.try_iter().collect();
    assert!(told.iter().any(|told| told.contains("irectory")), "{told:?}");
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Incomplete);
}

#[test]
fn what_the_sender_could_not_send_is_told_to_the_receiver_which_is_not_complete() {
    with_mounts("a large file", |scratch| {
        let disk = mounts::small(scratch.join("disk"), 1_000_000).expect("a disk");
        fs::create_dir(disk.join("top")).expect("a folder");
        fs::write(disk.join("top/small"), b"words").expect("a file");
        let large = File::create(disk.join("top/large")).expect("a file");
        large.set_len(17 << 40).expect("17 TiB of holes");
        let mut receiver = Receiver::new(&scratch.join("in"), true);
        let mut sender = Sender::new(errand(&disk.join("top"), receiver.address));
        let outcome = sender.outcome().expect("an outcome");
        assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
        let progress = outcome.status.progress;
        assert_eq!((progress.failures, progress.stored), (1, 1), "{outcome:?}");
        assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Incomplete);
        assert!(same(&disk.join("top/small"), &scratch.join("in/top/small")));
    });
}

/// What the sender says that cannot begin.
fn refused(what: &Path) -> String {
    let receiver = Receiver::new(&what.parent().expect("a folder").join("in"), false);
    let outcome = Sender::new(errand(what, receiver.address)).outcome();
    outcome.expect_err("nothing can be sent").to_string()
}

#[test]
fn what_is_no_file_and_no_folder_is_an_error_and_not_nothing() {
    let scratch = Scratch::new();
    mkfifo(&scratch.join("fifo"), Mode::S_IRWXU).expect("a FIFO");
    symlink("/dev/null", scratch.join("device")).expect("a link");
    for name in ["fifo", "device"] {
        let error = refused(&scratch.join(name));
        assert!(error.contains("neither a file nor a folder"), "{name}: {error}");
    }
}

#[test]
fn a_file_whose_size_is_a_lie_is_not_stored_empty() {
    let scratch = Scratch::new();
    let mut receiver = Receiver::new(&scratch.join("in"), true);
    let mut sender = Sender::new(errand(Path::new("/proc/version"), receiver.address));
    let outcome = sender.outcome().expect("an outcome");
    assert_eq!((outcome.status.progress.failures, outcome.status.progress.stored), (1, 0));
    let told: Vec<String> = sender.told.try_iter().collect();
    assert!(told.iter().any(|told| told.contains("as a stream")), "{told:?}");
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Incomplete);
    assert!(!scratch.join("in/version").exists());
}

#[test]
fn a_folder_for_all_stays_one_in_which_each_user_removes_only_the_own_files() {
    let scratch = Scratch::new();
    scratch.file("top/x", 10, 1);
    fs::set_permissions(scratch.join("top"), Permissions::from_mode(0o1777)).expect("a mode");
    let receiver = Receiver::new(&scratch.join("in"), false);
    Sender::new(errand(&scratch.join("top"), receiver.address)).outcome().expect("an outcome");
    let mode = fs::metadata(scratch.join("in/top")).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o7777, 0o1777);
}

#[test]
fn a_file_for_another_file_system_below_the_folder_is_refused_before_it_is_sent() {
    with_mounts("a mount point in the folder", |scratch| {
        scratch.file("top/m/x", 5_000_000, 1);
        scratch.file("top/y", 1000, 2);
        fs::create_dir_all(scratch.join("in/top")).expect("a folder");
        mounts::small(scratch.join("in/top/m"), 20_000_000).expect("a disk");
        let receiver = Receiver::new(&scratch.join("in"), false);
        let mut sender = Sender::new(errand(&scratch.join("top"), receiver.address));
        let outcome = sender.outcome().expect("an outcome");
        let progress = outcome.status.progress;
        assert_eq!((progress.failures, progress.stored), (1, 1), "{outcome:?}");
        assert!(progress.sent < 4_000_000, "all of it was sent: {outcome:?}");
        let told: Vec<String> = sender.told.try_iter().collect();
        assert!(told.iter().any(|told| told.contains("another file system")), "{told:?}");
    });
}

#[test]
fn a_folder_that_cannot_be_written_is_found_at_the_start() {
    with_mounts("a read-only disk", |scratch| {
        let disk = mounts::small(scratch.join("disk"), 1_000_000).expect("a disk");
        assert!(Directory::open(&disk, Policy::default()).is_ok());
        assert_eq!(fs::read_dir(&disk).expect("a folder").count(), 0, "nothing is left there");
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(None::<&str>, &disk, None::<&str>, flags, None::<&str>).expect("read-only");
        let error = Directory::open(&disk, Policy::default()).expect_err("read-only").to_string();
        assert!(error.contains("Read-only"), "{error}");
    });
}
