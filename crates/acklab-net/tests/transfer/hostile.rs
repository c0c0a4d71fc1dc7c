//! Senders that know the secret and mean harm, over a real connection.

use std::fs;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::thread;

use acklab_core::endpoint::Endpoint as _;
use acklab_core::ranges::RangeSet;
use acklab_core::time::Time;
use acklab_net::rudp::OsEntropy;
use acklab_net::rudp::driver::{Application, Driver, Sockets};
use acklab_net::rudp::noise::PassphraseClient;
use acklab_net::transfer::record::{Entry, FileTime, Kind, Record, VERSION};
use acklab_rudp::{Code, Config, Connection, Event};

use crate::ends::{PASSPHRASE, Receiver, Scratch, Told, same, send_to};
use crate::mounts::{private, run, text};

/// Sends what `next` gives, for as long as the receiver takes it, and reads none of its answers.
struct Deaf<F> {
    next: F,
    stream: Option<u64>,
}

impl<F: FnMut() -> Option<Vec<u8>>> Application<Connection> for Deaf<F> {
    fn on_progress(
        &mut self,
        now: Time,
        connection: &mut Connection,
        _: &mut Sockets,
    ) -> ControlFlow<()> {
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Opened { .. } => self.stream = connection.content().open_stream(now, true),
                Event::Closed { .. } => return ControlFlow::Break(()),
                _ => {}
            }
        }
        let Some(stream) = self.stream else { return ControlFlow::Continue(()) };
        while connection.content().room(stream) > 0 {
            let Some(block) = (self.next)() else {
                connection.close(now, Code::Stopped, "");
                return ControlFlow::Break(());
            };
            connection.content().write(stream, block);
        }
        ControlFlow::Continue(())
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// Drives such a sender to its end.
fn deaf(to: SocketAddr, next: impl FnMut() -> Option<Vec<u8>>) {
    let mut sockets = Sockets::default();
    let path = sockets.add(None, to).expect("a path");
    let mut driver = Driver::new(sockets).expect("a loop");
    let mut config = Config { keep_alive: true, ..Config::default() };
    config.parameters.max_stream_data = 16 << 10;
    let greeter = PassphraseClient::new(PASSPHRASE.parse().expect("a passphrase"));
    let (now, entropy) = (driver.now(), Box::new(OsEntropy::default()));
    let mut connection = Connection::connect(now, config, entropy, Box::new(greeter), &[path]);
    driver.run(&mut connection, &mut Deaf { next, stream: None }).expect("the loop");
}

/// The start of a transfer, and entries that are refused, each answered by more bytes than it has.
fn refused(entries: u64) -> impl FnMut() -> Option<Vec<u8>> {
    let mut index = 0;
    move || {
        let mut bytes = Vec::new();
        if index == 0 {
            let (count, data, transfer) = (entries, 0, [9; 16]);
            let (asks, rehearses) = (false, false);
            Record::Hello { version: VERSION, asks, rehearses, transfer, count, bytes: 0, data }
                .put(&mut bytes);
        }
        for _ in 0..1000 {
            let (mtime, holes) = (FileTime::default(), RangeSet::new());
            let (kind, target, path) = (Kind::Directory, Vec::new(), b"..".to_vec());
            Record::Entry(Entry { index, kind, mode: 0, mtime, size: 0, holes, target, path })
                .put(&mut bytes);
            index += 1;
        }
        (index <= entries).then_some(bytes)
    }
}

/// Answers that may wait for such a sender: what the stream keeps unsent, what it granted, and what waits for
/// the stream; each has more than 30 bytes.
const ANSWERS: u64 = (4 << 20) / 30;

#[test]
fn a_sender_that_reads_no_answers_is_not_answered_without_end() {
    let scratch = Scratch::new();
    let mut receiver = Receiver::new(&scratch.join("in"), false);
    let to = receiver.address;
    let hostile = thread::spawn(move || deaf(to, refused(1_000_000)));
    let (mut before, mut still) = (0, 0);
    for told in &receiver.told {
        let Told::Status(so_far) = told else { continue };
        assert!(so_far.refused < ANSWERS, "{} answers wait", so_far.refused);
        still = if so_far.refused == before { still + 1 } else { 0 };
        before = so_far.refused;
        if before > 0 && still == 5 {
            break;
        }
    }
    // The others are served all the same.
    let file = scratch.file("x", 3_000_000, 1);
    send_to(&file, to);
    assert!(same(&file, &scratch.join("in/x")));
    receiver.stop();
    hostile.join().expect("it hears the end");
}

#[test]
fn the_folder_of_unfinished_files_takes_no_files_by_any_name() {
    let test = || {
        let scratch = Scratch::new();
        let (parts, alias) = (scratch.join("in/.acklab-part"), scratch.join("in/alias"));
        fs::create_dir_all(&parts).expect("a folder");
        fs::create_dir(&alias).expect("a folder");
        let bound = || run("mount", &["--bind", text(&parts), text(&alias)]);
        if let Err(why) = private().and_then(|()| bound()) {
            eprintln!("SKIPPED: another name of a folder: {why}: not permitted here");
            return;
        }
        for name in ["x", "sub/y"] {
            scratch.file(&format!("alias/{name}"), 5, 1);
        }
        let receiver = Receiver::new(&scratch.join("in"), false);
        let outcome = send_to(&scratch.join("alias"), receiver.address);
        assert_eq!((outcome.status.progress.stored, outcome.status.progress.failures), (0, 6));
        assert!(!parts.join("sub").exists() && !parts.join("x").exists());
    };
    thread::spawn(test).join().expect("the test");
}
