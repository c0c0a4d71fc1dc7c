//! Receivers and senders of transfers in threads, and folders that go with the test.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Inbox, channel};
use std::thread::{self, JoinHandle};

use acklab_core::rng::Rng;
use acklab_net::transfer::directory::Directory;
use acklab_net::transfer::exclude::Exclude;
use acklab_net::transfer::policy::Policy;
use acklab_net::transfer::receive::{self, Gate, Reception, ReceptionError, Verdict};
use acklab_net::transfer::receiver::Received;
use acklab_net::transfer::send::{self, Errand, ErrandError, Outcome, Secret, What};
use acklab_rudp::{Code, Config};
use tempfile::TempDir;

/// A folder that goes with the test.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file of random bytes.
    pub(crate) fn file(&self, name: &str, len: usize, seed: u64) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, content(len, seed)).expect("a file");
        path
    }
}

pub(crate) fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::named(seed, "content");
    let words = std::iter::repeat_with(|| rng.next_u64().to_le_bytes());
    words.flatten().take(len).collect()
}

/// Whether two files hold the same.
pub(crate) fn same(one: &Path, other: &Path) -> bool {
    let read = |path: &Path| fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    read(one) == read(other)
}

/// The passphrase that both ends have unless a test says otherwise.
pub(crate) const PASSPHRASE: &str = "able-baker-cat-dog";

pub(crate) fn gate() -> Gate {
    Gate::Passphrase(PASSPHRASE.parse().expect("a passphrase"))
}

/// What a receiver has told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    Opened,
    Status(Received),
    Ended { unheard: bool },
    TurnedAway(Code, u64),
    Spent,
}

/// A receiver; stopped when it is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    pub(crate) told: Inbox<Told>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Verdict, ReceptionError>>>,
}

impl Receiver {
    pub(crate) fn new(folder: &Path, once: bool) -> Self {
        Self::with(folder, once, gate(), "127.0.0.1:0")
    }

    pub(crate) fn with(folder: &Path, once: bool, gate: Gate, listen: &str) -> Self {
        let directory = Some(Directory::open(folder, Policy::default()).expect("a folder"));
        let listen = vec![listen.parse().expect("an address")];
        let config = Config::default();
        Self::of(Reception { directory, listen, gate, once, guesses: None, config })
    }

    /// One that allows a single wrong guess.
    pub(crate) fn of_one_guess(folder: &Path, once: bool) -> Self {
        let directory = Some(Directory::open(folder, Policy::default()).expect("a folder"));
        let listen = vec!["127.0.0.1:0".parse().expect("an address")];
        let config = Config::default();
        Self::of(Reception { directory, listen, gate: gate(), once, guesses: Some(1), config })
    }

    fn of(reception: Reception) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (addresses, address) = channel();
        let (tell, told) = channel();
        let stopped = Arc::clone(&stop);
        let run = move || {
            receive::receive(&reception, &stopped, &mut |news| {
                let told = match news {
                    receive::News::Listening(bound) => {
                        addresses.send(bound[0]).expect("the test waits");
                        return;
                    }
                    receive::News::Opened { .. } => Told::Opened,
                    receive::News::Problem(_) => return,
                    receive::News::Status { received, .. } => Told::Status(received),
                    receive::News::Ended { unheard, .. } => Told::Ended { unheard },
                    receive::News::Spent => Told::Spent,
                    receive::News::TurnedAway { code, count, .. } => Told::TurnedAway(code, count),
                };
                let _ = tell.send(told);
            })
        };
        let thread = Some(thread::spawn(run));
        let address = address.recv().expect("it listens");
        Self { address, told, stop, thread }
    }

    /// What it came to; it must end by itself.
    pub(crate) fn verdict(&mut self) -> Result<Verdict, ReceptionError> {
        self.thread.take().expect("asked once").join().expect("no panic")
    }

    /// Everything that was told and not read, without progress.
    pub(crate) fn said(&self) -> Vec<Told> {
        self.told.try_iter().filter(|told| !matches!(told, Told::Status(_))).collect()
    }

    pub(crate) fn stop(&mut self) -> Verdict {
        self.stop.store(true, Ordering::SeqCst);
        self.verdict().expect("a verdict")
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A sender; stopped when it is dropped.
pub(crate) struct Sender {
    /// What it complained of, as it came.
    pub(crate) told: Inbox<String>,
    /// Bytes that the receiver has confirmed, five times a second.
    pub(crate) progress: Inbox<u64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Outcome, ErrandError>>>,
}

pub(crate) fn errand(what: &Path, to: SocketAddr) -> Errand {
    Errand {
        what: What::Tree { paths: vec![what.to_owned()], exclude: Exclude::default() },
        to: vec![to],
        rehearsal: false,
        renewal: send::RENEWAL,
        paths: Vec::new(),
        secret: Secret::Passphrase(PASSPHRASE.parse().expect("a passphrase")),
        rate: None,
        config: Config::default(),
    }
}

impl Sender {
    pub(crate) fn new(errand: Errand) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (confirm, progress) = channel();
        let (tell, told) = channel();
        let run = move || {
            send::send(&errand, &stopped, &mut |news| match news {
                send::News::Status(status) => {
                    let _ = confirm.send(status.progress.confirmed);
                }
                send::News::Due(_) => {}
                send::News::Problem(problem) => {
                    let _ = tell.send(problem);
                }
            })
        };
        Self { told, progress, stop, thread: Some(thread::spawn(run)) }
    }

    /// Waits until the receiver has confirmed so many bytes.
    pub(crate) fn wait_for(&self, bytes: u64) {
        let told = |confirmed: u64| confirmed >= bytes;
        assert!(self.progress.iter().any(told), "it ended before {bytes} B were confirmed");
    }

    pub(crate) fn outcome(&mut self) -> Result<Outcome, ErrandError> {
        self.thread.take().expect("asked once").join().expect("no panic")
    }

    pub(crate) fn stop(&mut self) -> Result<Outcome, ErrandError> {
        self.stop.store(true, Ordering::SeqCst);
        self.outcome()
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends with the usual passphrase and waits for the end.
pub(crate) fn send_to(what: &Path, to: SocketAddr) -> Outcome {
    Sender::new(errand(what, to)).outcome().expect("an outcome")
}
