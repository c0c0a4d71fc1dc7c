//! Any bytes as records, names, journals, and as a sender's stream into a folder: no panic, what parses
//! is written and read alike, and nothing appears outside of the folder.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use acklab_net::transfer::journal;
use acklab_net::transfer::name::Name;
use acklab_net::transfer::receiver::Receiver;
use acklab_net::transfer::record::{Record, VERSION};
use acklab_net::transfer::store::Directory;
use libfuzzer_sys::fuzz_target;

/// A folder that holds DIR and nothing else.
static GUARD: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("acklab-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(path.join("in")).expect("a folder");
    path
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    match first % 4 {
        0 => records(rest),
        1 => {
            if let Ok(name) = Name::new(rest) {
                let (parents, last) = name.split();
                assert!(parents.chain([last]).all(|part| part != "" && part != "." && part != ".."));
            }
        }
        2 => {
            let size = u64::from(first) << 20;
            if let Some(values) = journal::read(rest, [0; 16], size) {
                assert!(values.iter().all(|(chunk, _)| chunk << 20 < size));
            }
        }
        _ => receive(first, rest),
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

/// After a good HELLO, the bytes in pieces; then the same folder once more, as after an interruption.
fn receive(first: u8, bytes: &[u8]) {
    let folder = GUARD.join("in");
    for asks in [false, true] {
        let Ok(directory) = Directory::open(&folder, first & 64 != 0) else { return };
        let mut receiver = Receiver::new(directory);
        let mut hello = Vec::new();
        Record::Hello { version: VERSION, asks, transfer: [1; 16], count: 1, bytes: 1 }
            .put(&mut hello);
        receiver.handle_block(hello);
        'pieces: for piece in bytes.chunks(usize::from(first / 4) * 40 + 1) {
            receiver.handle_block(piece.to_vec());
            loop {
                match receiver.advance() {
                    Ok(true) => {}
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
