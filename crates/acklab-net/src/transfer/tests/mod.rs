//! Sender and receiver over a pipe in memory that cuts their bytes anywhere.
//!
//! Goal: every claim of docs/rudp.md section 10 about files. Method: real folders, both ends in one
//! thread, blocks cut into odd pieces, interruptions at chosen bytes.

mod hostile;
mod resume;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::mpsc::{Receiver as Receive, Sender as Send, channel};
use std::time::{Duration, SystemTime};

use acklab_core::rng::Rng;
use acklab_core::time::Time;

use super::directory::Directory;
use super::exclude::Exclude;
use super::inlet::Inlet;
use super::policy::{Existing, Policy};
use super::receiver::{Destination as _, ReceiveError, Receiver};
use super::record::Record;
use super::sender::{BLOCK, Next, SendError, Sender};
use super::stdin::Input;
use super::walk::{Survey, Walk};

/// Both ends and what lies between them.
struct Pipe {
    sender: Sender,
    receiver: Receiver,
    rng: Rng,
    /// Bytes that have gone to the receiver.
    carried: u64,
    /// (entry, chunk) of what was sent.
    chunks: Vec<(u64, u64)>,
    watch: Inlet,
    body: usize,
    /// Bytes that an end of `run` cut off.
    rest: Vec<u8>,
    /// Told when a stream has something new, or the disk has.
    wakes: Receive<()>,
    wake: Send<()>,
    /// The sender waits for a thread.
    streams: bool,
    /// The receiver hears that the sender has heard the end.
    goodbye: bool,
    now: Time,
}

#[derive(Debug)]
enum Fault {
    Sender(#[expect(dead_code, reason = "printed where a test fails")] SendError),
    Receiver(#[expect(dead_code, reason = "the same")] ReceiveError),
}

impl Pipe {
    fn new(from: &Path, to: &Path, seed: u64) -> Self {
        Self::into(from, Directory::open(to, Policy::default()).expect("a folder"), seed)
    }

    fn into(from: &Path, directory: Directory, seed: u64) -> Self {
        let survey = Survey::new(&[from], &Exclude::default()).expect("a survey");
        let walk = Walk::new(&[from], &Exclude::default()).expect("a walk");
        let asks = directory.holds_anything();
        let (wake, wakes) = channel();
        let woken = wake.clone();
        Self {
            sender: Sender::new(walk, survey, asks),
            receiver: Receiver::new(directory, move || woken.send(()).unwrap_or_default()),
            rng: Rng::named(seed, "pipe"),
            carried: 0,
            chunks: Vec::new(),
            watch: Inlet::default(),
            body: 0,
            rest: Vec::new(),
            wakes,
            wake,
            streams: false,
            goodbye: true,
            now: Time::ZERO,
        }
    }

    /// Carries until the end, or until `most` bytes have gone.
    fn run(&mut self, most: u64) -> Result<(), Fault> {
        while !self.sender.is_finished() && self.carried < most {
            let room = 1 + self.rng.next_u64() as usize % 600_000;
            let mut idle = false;
            let rest = std::mem::take(&mut self.rest);
            let next =
                if rest.is_empty() { self.sender.poll_block(room) } else { Next::Block(rest) };
            match next {
                Next::Block(block) => self.carry(&block, most),
                Next::Busy => {}
                Next::Waiting => idle = true,
            }
            while self.receiver.advance(self.now).map_err(Fault::Receiver)? {}
            while let Some(back) = self.receiver.poll_block() {
                idle = false;
                for piece in self.cut(&back) {
                    self.sender.handle_block(piece).map_err(Fault::Sender)?;
                }
            }
            if idle {
                assert!(
                    self.receiver.is_waiting() || self.streams,
                    "both ends wait for each other"
                );
                self.wakes.recv().expect("a thread says when there is more");
            }
        }
        if self.sender.is_finished() && self.goodbye {
            self.receiver.dismiss();
        }
        Ok(())
    }

    fn carry(&mut self, block: &[u8], most: u64) {
        let (block, rest) = block.split_at(block.len().min((most - self.carried) as usize));
        self.rest = rest.to_vec();
        self.carried += block.len() as u64;
        self.observe(block);
        for piece in self.cut(block) {
            self.receiver.handle_block(piece);
        }
    }

    fn observe(&mut self, block: &[u8]) {
        self.watch.push(block.to_vec());
        loop {
            while self.body > 0 {
                let Some(data) = self.watch.data(self.body) else { return };
                self.body -= data.len();
            }
            let Some(record) = self.watch.record().expect("records") else { return };
            if let Record::Chunk { index, chunk, len } = record {
                self.chunks.push((index, chunk));
                self.body = len as usize + 32;
            }
        }
    }

    /// The bytes in pieces of any size.
    fn cut(&mut self, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let most = [3, 1500, 70_000, 300_000][self.rng.next_u64() as usize % 4];
            let len = (1 + self.rng.next_u64() as usize % most).min(bytes.len());
            pieces.push(bytes[..len].to_vec());
            bytes = &bytes[len..];
        }
        pieces
    }

    fn finish(&mut self) {
        self.run(u64::MAX).expect("a transfer");
        assert_eq!(self.sender.progress().failures, 0, "{:?}", self.sender.take_problems());
    }
}

/// Random bytes.
fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::named(seed, "content");
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn age(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000 + seconds, 123_456_789);
    fs::File::open(path).and_then(|file| file.set_modified(time)).expect("a time");
}

/// Name, permissions, time, content.
type Line = (String, u32, i64, i64, Option<[u8; 32]>);

/// Names, contents or targets, permissions and times below a folder.
fn listing(root: &Path) -> Vec<Line> {
    let mut all = Vec::new();
    let mut stack = vec![root.to_owned()];
    while let Some(path) = stack.pop() {
        let meta = fs::symlink_metadata(&path).expect("metadata");
        let name = path.strip_prefix(root).expect("below").display().to_string();
        let content = if meta.is_symlink() {
            Some(fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes())
        } else {
            meta.is_file().then(|| fs::read(&path).expect("a file"))
        };
        let hash = content.map(|bytes| *blake3::hash(&bytes).as_bytes());
        all.push((name, meta.mode() & 0o7777, meta.mtime(), meta.mtime_nsec(), hash));
        if meta.is_dir() {
            stack.extend(
                fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("entry").path()),
            );
        }
    }
    all.sort();
    all
}

fn same(one: &Path, other: &Path) {
    let (one, other) = (listing(one), listing(other));
    assert_eq!(one.len(), other.len());
    for pair in one.iter().zip(&other) {
        assert_eq!(pair.0, pair.1);
    }
}

fn tree(root: &Path) {
    let sub = root.join("sub/deep");
    fs::create_dir_all(&sub).expect("folders");
    fs::create_dir(root.join("hollow")).expect("a folder");
    for (index, len) in [0, 1, 1023, 1 << 20, (1 << 20) + 1, 5_000_000].into_iter().enumerate() {
        let path = if index % 2 == 0 {
            root.join(format!("f{index}"))
        } else {
            sub.join(format!("g{index}"))
        };
        fs::write(&path, content(len, index as u64)).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600 | index as u32))
            .expect("permissions");
        age(&path, index as u64);
    }
    for index in 0..300 {
        fs::write(root.join(format!("hollow/{index}")), format!("{index}")).expect("a file");
    }
    symlink("f0", root.join("link")).expect("a link");
    fs::set_permissions(root.join("hollow"), fs::Permissions::from_mode(0o555))
        .expect("permissions");
    for folder in [&sub, &root.join("sub"), &root.join("hollow"), root] {
        age(folder, 77);
    }
}

#[test]
fn a_tree_arrives_with_its_contents_permissions_and_times_however_the_bytes_are_cut() {
    for seed in 0..4 {
        let scratch = tempfile::tempdir().expect("a folder");
        let (from, to) = (scratch.path().join("top"), scratch.path().join("in"));
        fs::create_dir(&from).expect("a folder");
        tree(&from);
        let mut pipe = Pipe::new(&from, &to, seed);
        pipe.finish();
        same(&from, &to.join("top"));
        assert_eq!(pipe.sender.progress().stored, 306);
        assert_eq!(pipe.sender.progress().stored_bytes, pipe.sender.totals().bytes);
        assert_eq!(fs::read_dir(&to).expect("DIR").count(), 1, "nothing but the tree is left");
    }
}

#[test]
fn holes_are_neither_sent_nor_written() {
    let scratch = tempfile::tempdir().expect("a folder");
    let from = scratch.path().join("sparse");
    let file = fs::File::create(&from).expect("a file");
    file.set_len(64 << 20).expect("a hole");
    for (at, len) in [(3 << 20, 100), ((20 << 20) - 5, 10), ((64 << 20) - 1, 1)] {
        std::os::unix::fs::FileExt::write_all_at(&file, &content(len, 1), at).expect("data");
    }
    let to = scratch.path().join("in");
    let mut pipe = Pipe::new(&from, &to, 1);
    pipe.finish();
    let chunks: Vec<u64> = pipe.chunks.iter().map(|&(_, chunk)| chunk).collect();
    assert_eq!(chunks, [3, 19, 20, 63]);
    assert_eq!(fs::read(&from).expect("a file"), fs::read(to.join("sparse")).expect("a file"));
    let blocks = fs::metadata(to.join("sparse")).expect("metadata").blocks();
    assert!(blocks * 512 <= 5 << 20, "{blocks} blocks");
}

#[test]
fn a_sender_that_need_not_ask_says_everything_without_an_answer() {
    let scratch = tempfile::tempdir().expect("a folder");
    let from = scratch.path().join("top");
    fs::create_dir(&from).expect("a folder");
    for name in ["a", "b", "c"] {
        fs::write(from.join(name), content(1_500_000, 1)).expect("a file");
    }
    let mut pipe = Pipe::new(&from, &scratch.path().join("in"), 1);
    let mut watch = Inlet::default();
    loop {
        match pipe.sender.poll_block(BLOCK) {
            Next::Block(block) => watch.push(block),
            Next::Busy => {}
            Next::Waiting => break,
        }
    }
    let mut last = None;
    while let Some(record) = watch.record().expect("records") {
        if let Record::Chunk { len, .. } = record {
            let mut left = len as usize + 32;
            while left > 0 {
                left -= watch.data(left).expect("the chunk is there").len();
            }
        }
        last = Some(record);
    }
    assert_eq!(last, Some(Record::Done));
}

#[test]
fn a_file_whose_name_is_a_folders_is_refused_and_the_others_arrive() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("top"), scratch.path().join("in"));
    fs::create_dir(&from).expect("a folder");
    fs::create_dir_all(to.join("top/b")).expect("folders");
    for name in ["a", "b", "c"] {
        fs::write(from.join(name), content(1_500_000, 1)).expect("a file");
    }
    let mut pipe = Pipe::new(&from, &to, 1);
    pipe.run(u64::MAX).expect("a transfer");
    assert_eq!((pipe.sender.progress().failures, pipe.sender.progress().stored), (1, 2));
    assert!(pipe.sender.take_problems()[0].contains("top/b"));
    assert!(to.join("top/a").is_file() && to.join("top/b").is_dir() && to.join("top/c").is_file());
}

#[test]
fn a_stream_of_any_length_arrives_whole() {
    const MIB: usize = 1 << 20;
    for (seed, len) in [0, 5, MIB - 1, MIB, MIB + 1, 3 * MIB, 5_000_000].into_iter().enumerate() {
        let scratch = tempfile::tempdir().expect("a folder");
        let bytes = content(len, 1);
        let mut pipe = Pipe::new(scratch.path(), scratch.path(), seed as u64);
        let from = std::io::Cursor::new(bytes.clone());
        let wake = pipe.wake.clone();
        let input = Input::new(from, move || wake.send(()).unwrap_or_default());
        pipe.sender = Sender::of_stream(input, "stdin", [seed as u8; 16]);
        pipe.streams = true;
        pipe.finish();
        assert_eq!(fs::read(scratch.path().join("stdin")).expect("a file"), bytes);
        assert_eq!(pipe.sender.progress().stored_bytes, len as u64);
    }
}

#[test]
fn a_file_that_is_one_hole_arrives_without_a_chunk() {
    let scratch = tempfile::tempdir().expect("a folder");
    let from = scratch.path().join("large");
    let file = fs::File::create(&from).expect("a file");
    file.set_len(300 << 20).expect("a hole");
    let to = scratch.path().join("in");
    let mut pipe = Pipe::new(&from, &to, 1);
    pipe.finish();
    assert!(pipe.chunks.is_empty());
    assert_eq!(fs::metadata(to.join("large")).expect("metadata").len(), 300 << 20);
}

#[test]
fn a_file_that_is_there_is_replaced_when_the_new_one_is_complete_and_kept_with_keep() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::create_dir(&to).expect("a folder");
    fs::write(&from, content(3_000_000, 1)).expect("a file");
    fs::write(to.join("x"), b"old").expect("a file");
    let keep = Directory::open(&to, Policy { existing: Existing::Keep, ..Policy::default() })
        .expect("a folder");
    let mut pipe = Pipe::into(&from, keep, 1);
    pipe.run(u64::MAX).expect("a transfer");
    assert_eq!(pipe.sender.progress().failures, 1);
    assert!(pipe.sender.take_problems()[0].contains("is there already"));
    assert_eq!(fs::read(to.join("x")).expect("a file"), b"old");
    drop(pipe);
    let mut pipe = Pipe::new(&from, &to, 1);
    pipe.run(2_000_000).expect("most of it");
    assert_eq!(fs::read(to.join("x")).expect("a file"), b"old");
    drop(pipe);
    let mut pipe = Pipe::new(&from, &to, 1);
    pipe.finish();
    assert_eq!(fs::read(to.join("x")).expect("a file"), content(3_000_000, 1));
}

#[test]
fn a_file_that_changes_while_it_is_read_is_sent_again_and_given_up_after_three_times() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (from, to) = (scratch.path().join("x"), scratch.path().join("in"));
    fs::write(&from, content(4_000_000, 1)).expect("a file");
    let mut pipe = Pipe::new(&from, &to, 1);
    pipe.run(2_000_000).expect("half of it");
    fs::write(&from, content(4_100_000, 2)).expect("a file");
    pipe.finish();
    assert_eq!(fs::read(to.join("x")).expect("a file"), content(4_100_000, 2));
    fs::write(&from, content(4_200_000, 3)).expect("a file");
    let mut pipe = Pipe::new(&from, &to, 1);
    let mut at = 0;
    while !pipe.sender.is_finished() {
        at += 700_000;
        pipe.run(at).expect("a part of it");
        fs::write(&from, content(4_000_000 + at as usize % 1000, at)).expect("a file");
    }
    assert_eq!(pipe.sender.progress().failures, 1);
    assert!(pipe.sender.take_problems().last().expect("a problem").contains("three times"));
    assert_eq!(fs::read(to.join("x")).expect("a file"), content(4_100_000, 2), "the old one stays");
}
