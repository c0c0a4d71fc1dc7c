//! Interruptions, and what comes again after them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;

use super::{Pipe, content, same, tree};
use crate::transfer::directory::Directory;
use crate::transfer::name::PART_FOLDER;
use crate::transfer::policy::Policy;
use crate::transfer::receiver::Destination as _;

#[test]
fn what_was_confirmed_is_never_sent_again_wherever_a_transfer_is_cut() {
    for seed in 0..12 {
        let scratch = tempfile::tempdir().expect("a folder");
        let (from, to) = (scratch.path().join("x"), scratch.path().join("in"));
        let size = 20_345_678;
        fs::write(&from, content(size, seed)).expect("a file");
        let (mut confirmed, mut resumed, mut sent) = (0, 0, BTreeSet::new());
        for part in 1..=3 {
            let mut pipe = Pipe::new(&from, &to, seed * 10 + part);
            pipe.run(1_000_000 + seed * 300_001).expect("a part of it");
            let progress = pipe.sender.progress();
            assert!(progress.resumed >= confirmed, "all that was confirmed is held");
            confirmed = progress.confirmed;
            resumed = progress.resumed;
            for &(_, chunk) in &pipe.chunks {
                assert!(chunk << 20 >= resumed, "chunk {chunk} is below {resumed}");
                sent.insert(chunk);
            }
            assert!(!to.join("x").exists(), "an unfinished file has no name");
        }
        assert!(resumed > 0 || seed < 3);
        let mut pipe = Pipe::new(&from, &to, seed);
        pipe.finish();
        assert!(pipe.chunks.iter().all(|&(_, chunk)| chunk << 20 >= confirmed));
        assert_eq!(fs::read(to.join("x")).expect("a file"), content(size, seed));
        assert!(!to.join(PART_FOLDER).exists());
    }
}

#[test]
fn files_of_a_tree_that_were_stored_are_not_sent_again() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("top"), scratch.path().join("in"));
    fs::create_dir(&from).expect("a folder");
    tree(&from);
    let mut sent = Vec::new();
    let rounds = 8;
    for round in 1..rounds {
        let mut pipe = Pipe::new(&from, &to, round);
        pipe.run(900_000).expect("a part of it");
        sent.extend_from_slice(&pipe.chunks);
    }
    let mut pipe = Pipe::new(&from, &to, rounds);
    pipe.finish();
    sent.extend_from_slice(&pipe.chunks);
    same(&from, &to.join("top"));
    assert!(pipe.sender.progress().resumed > 0);
    // An interruption costs the one chunk that was on its way.
    let distinct: BTreeSet<_> = sent.iter().collect();
    let again = sent.len() - distinct.len();
    assert!(again < rounds as usize, "{again} chunks came again");
}

#[test]
fn damage_to_what_was_left_is_found_and_that_chunk_alone_comes_again() {
    for damaged in [0, 3, 6] {
        let scratch = tempfile::tempdir().expect("a folder");
        let (from, to) = (scratch.path().join("x"), scratch.path().join("in"));
        fs::write(&from, content(9_000_000, 1)).expect("a file");
        Pipe::new(&from, &to, 1).run(7_400_000).expect("most of it");
        part(&to).write_all_at(b"damage", damaged << 20).expect("damage");
        let mut pipe = Pipe::new(&from, &to, 2);
        pipe.finish();
        let chunks: Vec<u64> = pipe.chunks.iter().map(|&(_, chunk)| chunk).collect();
        assert_eq!(chunks, [7, 8, damaged]);
        assert_eq!(fs::read(to.join("x")).expect("a file"), content(9_000_000, 1));
    }
}

#[test]
fn a_file_that_became_another_begins_anew() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::write(&from, content(9_000_000, 1)).expect("a file");
    Pipe::new(&from, &to, 1).run(7_400_000).expect("most of it");
    fs::write(&from, content(9_000_001, 2)).expect("a file");
    let mut pipe = Pipe::new(&from, &to, 2);
    pipe.finish();
    assert_eq!(pipe.sender.progress().resumed, 0);
    assert_eq!(fs::read(to.join("x")).expect("a file"), content(9_000_001, 2));
    assert!(!to.join(PART_FOLDER).exists(), "the old part went too");
}

#[test]
fn content_that_changed_behind_its_time_is_found_by_the_whole_hash() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::write(&from, content(9_000_000, 1)).expect("a file");
    super::age(&from, 5);
    Pipe::new(&from, &to, 1).run(7_400_000).expect("most of it");
    fs::write(&from, content(9_000_000, 2)).expect("a file");
    super::age(&from, 5);
    let mut pipe = Pipe::new(&from, &to, 2);
    pipe.finish();
    assert_eq!(fs::read(to.join("x")).expect("a file"), content(9_000_000, 2));
}

#[test]
fn a_sender_that_comes_again_takes_over_from_its_dead_connection() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::write(&from, content(9_000_000, 1)).expect("a file");
    let directory = Directory::open(&to, Policy::default()).expect("a folder");
    let mut dead = Pipe::into(&from, directory.clone(), 1);
    dead.run(5_000_000).expect("half of it");
    let mut pipe = Pipe::into(&from, directory, 2);
    pipe.run(1_000_000).expect("a part of it");
    assert!(dead.receiver.advance(dead.now).is_err(), "the old connection may write no more");
    pipe.finish();
    assert_eq!(fs::read(to.join("x")).expect("a file"), content(9_000_000, 1));
}

#[test]
fn a_sender_that_did_not_hear_the_end_is_told_that_all_is_stored() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("top"), scratch.path().join("in"));
    fs::create_dir(&from).expect("a folder");
    tree(&from);
    let mut pipe = Pipe::new(&from, &to, 1);
    pipe.goodbye = false;
    pipe.finish();
    drop(pipe);
    assert!(to.join(PART_FOLDER).exists(), "what was stored is remembered");
    let mut pipe = Pipe::new(&from, &to, 2);
    pipe.finish();
    assert_eq!(pipe.chunks, []);
    assert_eq!(pipe.sender.progress().resumed, pipe.sender.totals().bytes);
    same(&from, &to.join("top"));
    assert!(!to.join(PART_FOLDER).exists());
}

#[test]
fn another_process_cannot_take_the_same_transfer() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::write(&from, content(9_000_000, 1)).expect("a file");
    let mut first = Pipe::new(&from, &to, 1);
    first.run(2_000_000).expect("a part of it");
    // Another `Directory` is what another process has.
    let mut second = Pipe::new(&from, &to, 2);
    let fault = second.run(2_000_000).expect_err("it is locked");
    assert!(format!("{fault:?}").contains("Busy"), "{fault:?}");
    first.finish();
}

/// The data of the one unfinished file.
fn part(to: &std::path::Path) -> fs::File {
    let folder = fs::read_dir(to.join(PART_FOLDER)).expect("parts").next().expect("one");
    let parts = fs::read_dir(folder.expect("an entry").path()).expect("parts");
    let path = parts
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.file_name().is_some_and(|name| name.len() == 32))
        .expect("the data");
    fs::File::options().write(true).open(path).expect("the data")
}
