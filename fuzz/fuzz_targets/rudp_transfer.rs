//! Any bytes as records, names, journals, and as a sender's stream into a folder: no panic, what parses
//! is written and read alike, and nothing appears outside of the folder.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::mpsc::channel;

use acklab_core::time::{Span, Time};
use acklab_net::transfer::chunk::{CHUNK, ChunkHasher, Tree, chunk_len, chunks};
use acklab_net::transfer::journal;
use acklab_net::transfer::name::Name;
use acklab_core::ranges::RangeSet;
use acklab_net::transfer::policy::{Existing, Policy, Prompter};
use acklab_net::transfer::receiver::{Destination as _, Receiver};
use acklab_net::transfer::record::{Entry, FileTime, Kind, Record, VERSION};
use acklab_net::transfer::directory::Directory;
use libfuzzer_sys::fuzz_target;

/// A folder that holds DIR and nothing else.
static GUARD: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("acklab-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(path.join("in")).expect("a folder");
    path
});

/// One for all inputs: its thread outlives whom it asks for, and looks like a leak to a sanitizer that comes while it ends.
static PROMPTER: LazyLock<Prompter> =
    LazyLock::new(|| Prompter::new(|question| question.len().is_multiple_of(2)));

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    match first % 5 {
        0 => records(rest),
        1 => {
            if let Ok(name) = Name::new(rest) {
                let (parents, last) = name.split();
                assert!(
                    parents.chain([last]).all(|part| part != "" && part != "." && part != "..")
                );
            }
        }
        2 => {
            let size = u64::from(first) << 20;
            if let Some(values) = journal::read(rest, [0; 16], size) {
                assert!(values.iter().all(|(chunk, _)| chunk << 20 < size));
            }
        }
        3 => receive(first, rest),
        _ => receive(first, &script(rest)),
    }
});

fn records(mut bytes: &[u8]) {
    while let Ok(Some((record, len))) = Record::parse(bytes) {
        let mut again = Vec::new();
        record.put(&mut again);
        let (copy, whole) = Record::parse(&again).expect("our own").expect("whole");
        assert_eq!((copy, whole), (record, again.len()));
        bytes = &bytes[len..];
    }
}

/// Names among which a script chooses: good ones, ones that meet each other, and bad ones.
const NAMES: [&[u8]; 8] =
    [b"a", b"a/b", b"a/b/c", b"b", b"../x", b"/x", b"a//b", b".acklab-part/x"];
/// Sizes in the same way: none, small, a chunk, more than one.
const SIZES: [u64; 4] = [0, 5, CHUNK, CHUNK + 3];

/// A sender that does mostly what it may: three bytes are a record, whose values and hashes fit unless a
/// bit says otherwise.
fn script(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut sizes = Vec::new();
    // Large files are few, so that an input takes milliseconds.
    for &[what, which, how] in bytes.as_chunks::<3>().0.iter().take(24) {
        let index = u64::from(which) % (sizes.len() as u64).max(1);
        let size = sizes.get(index as usize).copied().unwrap_or(0);
        let data = vec![how & 1; chunk_len(size, u64::from(how & 1)) as usize];
        match what % 6 {
            0 | 1 => {
                let size = SIZES[usize::from(how % 4)];
                let kinds =
                    [Kind::File, Kind::Directory, Kind::DirectoryEnd, Kind::Stream, Kind::Link];
                let kind = kinds[usize::from(what / 6 % 5)];
                let size = if kind == Kind::File { size } else { 0 };
                let (mode, mtime) = (u32::from(how) << 4, FileTime::default());
                let mut holes = RangeSet::new();
                holes.insert(0..u64::from(how >> 7).min(chunks(size)));
                let (index, path) = (sizes.len() as u64, NAMES[usize::from(which % 8)].to_vec());
                sizes.push(size);
                let target = NAMES[usize::from(how % 8)].to_vec();
                let target = if kind == Kind::Link { target } else { Vec::new() };
                Record::Entry(Entry { index, kind, mode, mtime, size, holes, target, path })
                    .put(&mut out);
            }
            2 | 3 => {
                let chunk = u64::from(how & 1);
                Record::Chunk { index, chunk, len: data.len() as u64 }.put(&mut out);
                let mut hasher = ChunkHasher::new(chunk);
                hasher.update(&data);
                let mut value = if data.is_empty() { [0; 32] } else { hasher.value(chunks(size)) };
                value[0] ^= u8::from(how >> 6 == 3);
                out.extend_from_slice(&data);
                out.extend_from_slice(&value);
            }
            4 => {
                let mut tree = Tree::default();
                for number in 0..chunks(size) {
                    let mut hasher = ChunkHasher::new(number);
                    hasher.update(&vec![number as u8; chunk_len(size, number) as usize]);
                    tree.push(hasher.value(chunks(size)));
                }
                Record::Root { index, size, hash: tree.root() }.put(&mut out);
            }
            _ if how & 1 == 0 => Record::Drop { index }.put(&mut out),
            _ => Record::Done.put(&mut out),
        }
    }
    out
}

/// After a good HELLO, the bytes in pieces; then the same folder once more, as after an interruption.
fn receive(first: u8, bytes: &[u8]) {
    let folder = GUARD.join("in");
    for asks in [false, true] {
        let existing = match first & 0xc0 {
            0x40 => Existing::Keep,
            0x80 => Existing::Ask(PROMPTER.clone()),
            _ => Existing::Replace,
        };
        let policy = Policy { existing, checksum: first & 1 != 0, any_links: first & 2 != 0 };
        let Ok(directory) = Directory::open(&folder, policy) else { return };
        let (wake, wakes) = channel();
        let mut receiver = Receiver::new(directory, move || wake.send(()).unwrap_or_default());
        let mut now = Time::ZERO;
        let mut hello = Vec::new();
        let transfer = [1; 16];
        let (version, rehearses) = (VERSION, asks && first & 4 != 0);
        Record::Hello { version, asks, rehearses, transfer, count: 1, bytes: 1, data: 1 }
            .put(&mut hello);
        receiver.handle_block(hello);
        'pieces: for piece in bytes.chunks(usize::from(first / 5) * 4000 + 101) {
            receiver.handle_block(piece.to_vec());
            loop {
                now += Span::from_secs(1);
                match receiver.advance(now) {
                    Ok(true) => {}
                    Ok(false) if receiver.is_waiting() => wakes.recv().expect("the disk"),
                    Ok(false) => break,
                    Err(_) => break 'pieces,
                }
            }
            let _ = receiver.poll_block();
        }
    }
    let around = std::fs::read_dir(&*GUARD).expect("the guard").count();
    assert_eq!(around, 1, "something was written outside of the folder");
    let _ = std::fs::remove_dir_all(&folder);
}
