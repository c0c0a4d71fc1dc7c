//! What the transfer layer itself costs, without a network: file -> sender -> receiver -> file.
//!
//!     cargo run --release -p acklab-net --example bench_transfer -- FOLDER [MB]
//!
//! FOLDER is where the file and its copy go (a tmpfs leaves the disk out). Prints CPU seconds per GB (10^9
//! B) of both ends together, and of their parts alone: BLAKE3 once over the file, reading, writing.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::channel;

use acklab_core::time::Time;
use acklab_net::transfer::directory::Directory;
use acklab_net::transfer::exclude::Exclude;
use acklab_net::transfer::policy::Policy;
use acklab_net::transfer::receiver::{Destination as _, Receiver};
use acklab_net::transfer::sender::{BLOCK, Next, Sender};
use acklab_net::transfer::walk::{Survey, Walk};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

fn cpu_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("rusage");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

fn timed(what: &str, bytes: u64, act: impl FnOnce()) {
    let before = cpu_seconds();
    act();
    println!("{what}: {:.3} CPU s/GB", (cpu_seconds() - before) / bytes as f64 * 1e9);
}

fn transfer(from: &Path, to: &Path) {
    let survey = Survey::new(&[from], &Exclude::default()).expect("a survey");
    let mut sender =
        Sender::new(Walk::new(&[from], &Exclude::default()).expect("a walk"), survey, false);
    let directory = Directory::open(to, Policy::default()).expect("a folder");
    let (wake, wakes) = channel();
    let mut receiver = Receiver::new(directory, move || wake.send(()).expect("the receiver waits"));
    while !sender.is_finished() {
        let next = sender.poll_block(BLOCK);
        if next == Next::Waiting && receiver.is_waiting() {
            wakes.recv().expect("the disk");
        }
        if let Next::Block(block) = next {
            // The connection's blocks: 64 KiB, which do not begin where the sender's do.
            for piece in block.chunks(64 << 10) {
                receiver.handle_block(piece.to_vec());
            }
        }
        while receiver.advance(Time::ZERO).expect("the receiver works") {}
        if let Some(back) = receiver.poll_block() {
            sender.handle_block(back).expect("the sender works");
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("FOLDER [MB]");
    let megabytes: u64 = arguments.next().map_or(500, |text| text.parse().expect("a number"));
    let folder = Path::new(&folder).join("bench-transfer");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let (from, to) = (folder.join("file"), folder.join("in"));
    let bytes = megabytes * 1_000_000;
    let block = vec![0x5a; 1_000_000];
    let mut file = File::create(&from).expect("a file");
    for _ in 0..megabytes {
        file.write_all(&block).expect("written");
    }
    for _ in 0..3 {
        timed("sender and receiver", bytes, || transfer(&from, &to));
    }
    let mut buffer = vec![0; 256 << 10];
    timed("reading alone", bytes, || {
        let mut file = File::open(&from).expect("a file");
        while file.read(&mut buffer).expect("read") > 0 {}
    });
    timed("BLAKE3 alone, in memory", bytes, || {
        for _ in 0..megabytes {
            std::hint::black_box(blake3::hash(&block));
        }
    });
    timed("writing alone, a new file", bytes, || {
        let file = File::create(folder.join("new")).expect("a file");
        for number in 0..bytes / buffer.len() as u64 {
            file.write_all_at(&buffer, number * buffer.len() as u64).expect("written");
        }
    });
    fs::remove_dir_all(&folder).expect("removed");
}
