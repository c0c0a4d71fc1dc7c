//! Senders that lie, and names that lead out.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use acklab_core::time::{Span, Time};

use crate::transfer::chunk::{CHUNK, chunks};
use crate::transfer::directory::Directory;
use crate::transfer::policy::{Existing, Policy, Prompter};
use crate::transfer::receiver::{Destination as _, Receiver};
use crate::transfer::record::{Entry, FileTime, Kind, Record, VERSION};
use acklab_core::ranges::RangeSet;

fn greeting(version: u8, data: u64) -> Record {
    let (asks, rehearses) = (false, false);
    Record::Hello { version, asks, rehearses, transfer: [1; 16], count: 1, bytes: 1, data }
}

fn hello() -> Record {
    greeting(VERSION, 1)
}

fn entry(index: u64, kind: Kind, path: &[u8], size: u64) -> Record {
    let (mtime, holes) = (FileTime { seconds: 5, nanos: 6 }, RangeSet::new());
    let (target, path) = (Vec::new(), path.to_vec());
    Record::Entry(Entry { index, kind, mode: 0o6755, mtime, size, holes, target, path })
}

/// A whole file of one chunk.
fn file(index: u64, path: &[u8], bytes: &[u8], out: &mut Vec<u8>) {
    let (size, hash) = (bytes.len() as u64, *blake3::hash(bytes).as_bytes());
    entry(index, Kind::File, path, size).put(out);
    Record::Chunk { index, chunk: 0, len: size }.put(out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(&hash);
    Record::Root { index, size, hash }.put(out);
}

fn receive(to: &Path, bytes: Vec<u8>) -> Result<Receiver, String> {
    let (wake, wakes) = std::sync::mpsc::channel();
    let directory = Directory::open(to, Policy::default()).expect("a folder");
    let mut receiver = Receiver::new(directory, move || wake.send(()).unwrap_or_default());
    receiver.handle_block(bytes);
    let (mut now, mut idle) = (Time::ZERO, 0);
    // What is complete is stored within a second.
    while idle < 2 {
        now += Span::from_secs(1);
        let more = receiver.advance(now).map_err(|error| error.to_string())?;
        if receiver.is_waiting() {
            wakes.recv().expect("the disk");
        }
        idle = if more || receiver.is_waiting() { 0 } else { idle + 1 };
    }
    Ok(receiver)
}

#[test]
fn no_name_and_no_link_leads_out_of_the_folder() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (to, outside) = (scratch.path().join("in"), scratch.path().join("outside"));
    fs::create_dir(&to).expect("DIR");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("victim"), b"untouched").expect("a file");
    symlink(&outside, to.join("out")).expect("a link");
    symlink(outside.join("victim"), to.join("file")).expect("a link");
    symlink("..", to.join("up")).expect("a link");
    let absolute = outside.join("victim").into_os_string().into_encoded_bytes();
    let names: &[&[u8]] = &[
        b"../outside/victim",
        b"a/../../outside/victim",
        &absolute,
        b"out/victim",
        b"out/new/file",
        b"up/outside/victim",
        b".acklab-part/x",
        b"..",
        b"",
    ];
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    for (index, name) in names.iter().enumerate() {
        file(index as u64, name, b"evil", &mut bytes);
    }
    let count = names.len() as u64;
    for (index, name) in names.iter().enumerate() {
        entry(count + index as u64, Kind::Directory, name, 0).put(&mut bytes);
    }
    // A link in the place of the file itself is replaced, not followed.
    file(2 * count, b"file", b"new", &mut bytes);
    Record::Done.put(&mut bytes);
    let mut receiver = receive(&to, bytes).expect("refusals are no errors");
    assert_eq!(receiver.received().refused, 2 * count, "{:#?}", receiver.take_problems());
    assert_eq!(receiver.received().stored, 1);
    assert!(receiver.is_finished());
    assert_eq!(fs::read(outside.join("victim")).expect("a file"), b"untouched");
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 1);
    assert_eq!(fs::read(to.join("file")).expect("a file"), b"new");
    assert!(!to.join("file").is_symlink());
}

fn link(index: u64, path: &[u8], target: &[u8]) -> Record {
    let Record::Entry(entry) = entry(index, Kind::Link, path, 0) else { unreachable!() };
    Record::Entry(Entry { target: target.to_vec(), ..entry })
}

#[test]
fn links_that_a_sender_makes_lead_no_file_of_its_elsewhere() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (to, outside) = (scratch.path().join("in"), scratch.path().join("outside"));
    fs::create_dir(&outside).expect("a folder");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    let absolute = outside.clone().into_os_string().into_encoded_bytes();
    let refused: [(&[u8], &[u8]); 6] = [
        (b"a", &absolute),
        (b"a", b"../outside"),
        (b"sub/a", b"../../outside"),
        (b"a", b"sub/../../outside"),
        (b".acklab-part/x", b"y"),
        (b"../outside/a", b"x"),
    ];
    for (index, (path, target)) in refused.iter().enumerate() {
        link(index as u64, path, target).put(&mut bytes);
    }
    // A link within the folder, in the place of a folder that was used, and files that would go through it.
    entry(6, Kind::Directory, b"real", 0).put(&mut bytes);
    file(7, b"used/x", b"good", &mut bytes);
    link(8, b"used", b"real").put(&mut bytes);
    link(9, b"new", b"real").put(&mut bytes);
    file(10, b"new/x", b"evil", &mut bytes);
    link(11, b"new", b"used").put(&mut bytes);
    Record::Done.put(&mut bytes);
    let mut receiver = receive(&to, bytes).expect("refusals are no errors");
    assert_eq!(receiver.received().refused, 8, "{:#?}", receiver.take_problems());
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
    assert_eq!(fs::read_dir(to.join("real")).expect("a folder").count(), 0);
    assert_eq!(fs::read(to.join("used/x")).expect("a file"), b"good");
    assert_eq!(fs::read_link(to.join("new")).expect("a link"), Path::new("used"), "the newest");
    assert!(fs::symlink_metadata(to.join("a")).is_err());
}

#[test]
fn the_folder_of_unfinished_files_may_not_be_a_link() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (to, outside) = (scratch.path().join("in"), scratch.path().join("outside"));
    fs::create_dir(&to).expect("DIR");
    fs::create_dir(&outside).expect("a folder");
    symlink(&outside, to.join(".acklab-part")).expect("a link");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    assert!(receive(&to, bytes).is_err());
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
}

#[test]
fn set_id_bits_are_cleared() {
    let scratch = tempfile::tempdir().expect("a folder");
    let to = scratch.path().join("in");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    file(0, b"program", b"x", &mut bytes);
    entry(1, Kind::Directory, b"d", 0).put(&mut bytes);
    entry(2, Kind::DirectoryEnd, b"d", 0).put(&mut bytes);
    receive(&to, bytes).expect("a transfer");
    for name in ["program", "d"] {
        let mode = fs::metadata(to.join(name)).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "{name}");
    }
}

#[test]
fn a_file_that_cannot_fit_is_refused_before_a_byte_of_it_is_written() {
    let scratch = tempfile::tempdir().expect("a folder");
    let to = scratch.path().join("in");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    entry(0, Kind::File, b"huge", 1 << 43).put(&mut bytes);
    let mut receiver = receive(&to, bytes).expect("a refusal is no error");
    assert!(receiver.take_problems()[0].contains("do not fit"));
}

#[test]
fn a_file_is_not_stored_unless_its_hash_fits() {
    let scratch = tempfile::tempdir().expect("a folder");
    let to = scratch.path().join("in");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    file(0, b"x", b"right", &mut bytes);
    file(1, b"y", b"right", &mut bytes);
    let at = bytes.len() - 1;
    bytes[at] ^= 1;
    let mut receiver = receive(&to, bytes).expect("it is asked for again");
    assert!(to.join("x").exists() && !to.join("y").exists());
    let mut replies = super::Inlet::default();
    replies.push(receiver.poll_block().expect("replies"));
    let bad = std::iter::from_fn(|| replies.record().expect("records"))
        .any(|record| matches!(record, Record::Bad { index: 1, .. }));
    assert!(bad, "the file whose hash does not fit is asked for again");
}

#[test]
fn whoever_breaks_the_order_of_records_is_told_so_and_leaves_no_name_behind() {
    let chunk = |index, chunk, len| Record::Chunk { index, chunk, len };
    let root = |size| Record::Root { index: 0, size, hash: [0; 32] };
    let named = || entry(0, Kind::File, b"x", 3 * CHUNK);
    let cases: Vec<Vec<Record>> = vec![
        vec![named()],
        vec![hello(), hello()],
        vec![hello(), entry(1, Kind::File, b"x", 1)],
        vec![hello(), chunk(0, 0, 1)],
        vec![hello(), named(), chunk(0, 3, CHUNK)],
        vec![hello(), named(), chunk(0, 0, CHUNK - 1)],
        vec![hello(), named(), chunk(0, 0, CHUNK + 1)],
        vec![hello(), named(), root(1)],
        vec![hello(), Record::Drop { index: 7 }],
        vec![hello(), Record::Done, Record::Done],
        vec![hello(), Record::Stored { index: 0, held: true }],
        vec![greeting(9, 0)],
        vec![greeting(VERSION, 1 << 50)],
    ];
    for records in cases {
        let scratch = tempfile::tempdir().expect("a folder");
        let to = scratch.path().join("in");
        let mut bytes = Vec::new();
        for record in &records {
            record.put(&mut bytes);
        }
        assert!(receive(&to, bytes).is_err(), "{records:?}");
        assert!(!to.join("x").exists());
    }
}

#[test]
fn a_confirmed_chunk_that_comes_again_is_an_error() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    entry(0, Kind::File, b"x", 2 * CHUNK).put(&mut bytes);
    let data = vec![7; CHUNK as usize];
    let mut hasher = crate::transfer::chunk::ChunkHasher::new(0);
    hasher.update(&data);
    for _ in 0..2 {
        Record::Chunk { index: 0, chunk: 0, len: CHUNK }.put(&mut bytes);
        bytes.extend_from_slice(&data);
        bytes.extend_from_slice(&hasher.value(chunks(2 * CHUNK)));
    }
    let Err(error) = receive(&scratch.path().join("in"), bytes) else { panic!("it was taken") };
    assert!(error.contains("confirmed"), "{error}");
}

#[test]
fn more_files_than_may_be_open_are_too_many() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    for index in 0..3000 {
        entry(index, Kind::File, format!("{index}").as_bytes(), 1).put(&mut bytes);
    }
    assert!(receive(&scratch.path().join("in"), bytes).is_err());
}

#[test]
fn more_empty_files_than_the_disk_has_taken_are_too_many() {
    let scratch = tempfile::tempdir().expect("a folder");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    for index in 0..3000 {
        entry(index, Kind::File, format!("{index}").as_bytes(), 0).put(&mut bytes);
    }
    assert!(receive(&scratch.path().join("in"), bytes).is_err());
}

#[test]
fn a_file_that_is_named_twice_is_never_said_to_hash_to_what_it_does_not() {
    let scratch = tempfile::tempdir().expect("a folder");
    let to = scratch.path().join("in");
    let mut bytes = Vec::new();
    hello().put(&mut bytes);
    for index in 0..2 {
        entry(index, Kind::File, b"x", 5).put(&mut bytes);
    }
    // The second one's data come over the first one's, before that is said to be complete.
    let hash = |data: &[u8]| *blake3::hash(data).as_bytes();
    for (index, data) in [(0, b"known"), (1, b"other")] {
        Record::Chunk { index, chunk: 0, len: 5 }.put(&mut bytes);
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(&hash(data));
    }
    Record::Root { index: 0, size: 5, hash: hash(b"known") }.put(&mut bytes);
    let mut receiver = receive(&to, bytes).expect("a refusal is no error");
    let content = fs::read(to.join("x")).expect("a file");
    assert_eq!(receiver.received().hash, Some(hash(&content)));
    assert_eq!(content, b"known");
    assert!(receiver.take_problems()[0].contains("twice"));
}

#[test]
fn an_answer_of_the_users_is_taken_though_the_rest_of_a_chunk_does_not_come() {
    let scratch = tempfile::tempdir().expect("a folder");
    let to = scratch.path().join("in");
    fs::create_dir(&to).expect("DIR");
    fs::write(to.join("a"), b"another").expect("a file");
    let (answer, answers) = std::sync::mpsc::channel();
    let prompter = Prompter::new(move |_| answers.recv().unwrap_or(false));
    let policy = Policy { existing: Existing::Ask(prompter), ..Policy::default() };
    let (wake, wakes) = std::sync::mpsc::channel();
    let directory = Directory::open(&to, policy).expect("a folder");
    let mut receiver = Receiver::new(directory, move || wake.send(()).unwrap_or_default());
    let mut bytes = Vec::new();
    let Record::Hello { version, rehearses, transfer, count, bytes: all, data, .. } = hello()
    else {
        unreachable!()
    };
    Record::Hello { version, asks: true, rehearses, transfer, count, bytes: all, data }
        .put(&mut bytes);
    entry(0, Kind::File, b"a", 3).put(&mut bytes);
    entry(1, Kind::File, b"b", 5).put(&mut bytes);
    Record::Chunk { index: 1, chunk: 0, len: 5 }.put(&mut bytes);
    bytes.extend_from_slice(b"hal");
    receiver.handle_block(bytes);
    while receiver.advance(Time::ZERO).expect("records") {}
    assert!(receiver.is_waiting(), "the user is asked");
    answer.send(true).expect("the user answers");
    wakes.recv().expect("a call");
    while receiver.advance(Time::ZERO).expect("an answer") {}
    assert!(!receiver.is_waiting(), "no call would follow");
}
