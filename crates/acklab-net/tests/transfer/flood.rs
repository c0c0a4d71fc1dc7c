//! Floods of greetings from forged addresses do not keep honest senders out.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_net::rudp::driver::{Application, Driver, Sockets};
use acklab_net::rudp::keys::Identity;
use acklab_net::rudp::noise::{KeysClient, PassphraseClient};
use acklab_net::rudp::peers::KnownPeers;
use acklab_net::transfer::receive::Gate;
use acklab_net::transfer::send::{End, Secret};
use acklab_rudp::protect::ClientGreeter;
use acklab_rudp::wire::{Long, LongBody, PROLOGUE, Writer};
use acklab_rudp::{Batch, Datagram, PathAddrs};

use crate::ends::{PASSPHRASE, Receiver, Scratch, Sender, errand, gate, same};

/// Sends greetings at a rate, each from another address of 127/8.
struct Flood {
    to: SocketAddr,
    port: u16,
    greetings: Vec<Vec<u8>>,
    every: Span,
    next: Time,
    count: usize,
}

/// How many leave at once, first: what a bucket may have held is gone.
const BURST: usize = 200;

impl Endpoint for Flood {
    type Arrival<'a> = Datagram<'a>;
    type Departure<'a> = Batch<'a>;
    type AppEvent = ();

    fn handle_packet(&mut self, _now: Time, _arrival: Datagram<'_>, _sink: &mut Sink) {}

    fn handle_timeout(&mut self, _now: Time, _sink: &mut Sink) {}

    fn poll_transmit(&mut self, now: Time, _sink: &mut Sink) -> Option<Batch<'_>> {
        if self.count >= BURST {
            if now < self.next {
                return None;
            }
            self.next += self.every;
        }
        let greeting = &self.greetings[self.count % self.greetings.len()];
        self.count += 1;
        let host = Ipv4Addr::from_bits(0x7f01_0000 + self.count as u32 % 4096);
        let addrs = PathAddrs { local: (host, self.port).into(), remote: self.to };
        Some(Batch { addrs, ecn: Ecn::NotEct, bytes: greeting, segment: greeting.len() })
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.next)
    }
}

/// Ends the loop when it is told to, and tells when the flood has begun.
struct Until {
    over: Arc<AtomicBool>,
    begun: Option<mpsc::Sender<()>>,
}

impl Application<Flood> for Until {
    fn on_progress(&mut self, _: Time, flood: &mut Flood, _: &mut Sockets) -> ControlFlow<()> {
        if flood.count >= BURST
            && let Some(begun) = self.begun.take()
        {
            begun.send(()).expect("the test waits");
        }
        if self.over.load(Ordering::SeqCst) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// An INITIAL with the message that `make` gives for its prologue.
fn initial(mode: u8, source: u64, make: &mut dyn FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = vec![0; 1200];
    let mut emit = |message: &[u8]| {
        let body = LongBody::Initial { mode, ciphers: 3, copy: 0, token: None, message };
        Long { destination: 0, source, body }.emit(&mut Writer::new(&mut bytes));
        bytes.clone()
    };
    let prologue = emit(&[]);
    let message = make(&prologue[..PROLOGUE]);
    emit(&message)
}

/// So many greetings with random messages.
fn garbage(mode: u8, count: u64) -> Vec<Vec<u8>> {
    let mut rng = Rng::named(1, "garbage");
    let mut noise = |_: &[u8]| (0..160).map(|_| rng.next_u64() as u8).collect();
    (1..=count).map(|source| initial(mode, source, &mut noise)).collect()
}

/// So many greetings of clients that do everything right but know no secret.
pub(crate) fn greetings(count: u64, client: &dyn Fn() -> Box<dyn ClientGreeter>) -> Vec<Vec<u8>> {
    let greet = |source| {
        let mut client = client();
        initial(client.mode(), source, &mut |prologue| client.initial(prologue, &[]))
    };
    (1..=count).map(greet).collect()
}

/// Eight honest senders during a flood, and the seconds that each took.
fn honest(
    folder: &Path,
    gate: Gate,
    secret: &Secret,
    (greetings, per_second): (Vec<Vec<u8>>, u64),
) -> Vec<Result<f64, String>> {
    let receiver = Receiver::with(&folder.join("in"), false, gate, "127.0.0.1:0");
    let over = Arc::new(AtomicBool::new(false));
    let sockets = Sockets::listen(&["0.0.0.0:0".parse().expect("an address")]).expect("a socket");
    let port = sockets.local().next().expect("an address").port();
    let every = Span::from_nanos(1_000_000_000 / per_second);
    let mut flood =
        Flood { to: receiver.address, port, greetings, every, next: Time::ZERO, count: 0 };
    let (tell, floods) = mpsc::channel();
    let mut until = Until { over: Arc::clone(&over), begun: Some(tell) };
    let flooding = thread::spawn(move || {
        Driver::new(sockets).expect("a loop").run(&mut flood, &mut until).expect("the loop");
        flood.count
    });
    floods.recv().expect("the flood");
    let mut senders: Vec<Sender> = (0..8)
        .map(|number| {
            let mut errand = errand(&folder.join(format!("{number}")), receiver.address);
            errand.secret = secret.clone();
            Sender::new(errand)
        })
        .collect();
    let took = senders.iter_mut().map(|sender| {
        let outcome = sender.outcome().expect("an outcome");
        match outcome.end {
            End::Finished => Ok(outcome.status.seconds),
            end => Err(format!("{end:?}")),
        }
    });
    let took = took.collect();
    over.store(true, Ordering::SeqCst);
    assert!(flooding.join().expect("the flood") >= BURST);
    took
}

#[test]
fn honest_senders_come_in_whatever_greetings_strangers_send() {
    let identity = || Identity::generate();
    let (alice, bob) = (identity(), identity());
    let line = format!("alice {}", alice.public());
    let peers = KnownPeers::parse(&line, Path::new("peers")).expect("one good line");
    let keys = || Gate::Keys(bob.clone(), peers.clone());
    let by_key = Secret::Keys(alice, bob.public());
    let passphrase = |text: &str| text.parse().expect("a passphrase");
    let by_word = Secret::Passphrase(passphrase(PASSPHRASE));
    let guesser = || Box::new(PassphraseClient::new(passphrase("able-baker-cat-dot"))) as Box<_>;
    let unknown = || Box::new(KeysClient::new(Identity::generate(), bob.public())) as Box<_>;
    let rows = [
        ("garbage, mode 1", gate(), &by_word, garbage(1, 1000), 25),
        ("garbage, mode 1", gate(), &by_word, garbage(1, 1000), 40),
        ("garbage, mode 1", gate(), &by_word, garbage(1, 1000), 100),
        ("garbage, mode 1", gate(), &by_word, garbage(1, 1000), 500),
        ("guesses, mode 1", gate(), &by_word, greetings(2000, &guesser), 1000),
        ("garbage, mode 2", keys(), &by_key, garbage(2, 1000), 5000),
        ("unknown keys, mode 2", keys(), &by_key, greetings(2000, &unknown), 5000),
    ];
    let mut out = 0;
    for (what, gate, secret, greetings, rate) in rows {
        let scratch = Scratch::new();
        for number in 0..8 {
            scratch.file(&format!("{number}"), 1000, number);
        }
        let folder = scratch.join("");
        let took = honest(&folder, gate, secret, (greetings, rate));
        let shown: Vec<String> = took
            .iter()
            .map(|took| took.as_ref().map_or("-".to_owned(), |took| format!("{took:.3}")))
            .collect();
        println!("{what}, {rate}/s: {}", shown.join(" "));
        for (number, _) in took.iter().enumerate().filter(|(_, took)| took.is_ok()) {
            let (file, copy) = (format!("{number}"), format!("in/{number}"));
            assert!(same(&scratch.join(&file), &scratch.join(&copy)));
        }
        out += took.iter().filter(|took| took.is_err()).count();
    }
    assert_eq!(out, 0, "senders did not come in");
}
