//! Whoever has not the secret decides nothing.

use std::net::{SocketAddr, UdpSocket};

use acklab_net::rudp::noise::PassphraseClient;
use acklab_net::transfer::receive::Verdict;
use acklab_net::transfer::send::{End, Secret};
use acklab_rudp::Code;
use acklab_rudp::protect::ClientGreeter;
use acklab_rudp::wire::{Long, LongBody, Writer};

use crate::ends::{Receiver, Scratch, Sender, Told, errand, same, send_to};
use crate::flood::greetings;

/// An INITIAL that no one could have wanted to send.
fn initial(mode: u8, source: u64, message: &[u8]) -> Vec<u8> {
    let body = LongBody::Initial { mode, ciphers: 3, copy: 0, token: None, message };
    let mut bytes = vec![0; 1200];
    Long { destination: 0, source, body }.emit(&mut Writer::new(&mut bytes));
    bytes
}

/// Sends each kind of greeting that a receiver can make nothing of.
fn knock(at: SocketAddr) {
    let attacker = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for (source, mode) in [255, 0, 1, 2, 77].into_iter().enumerate() {
        for message in [&[][..], &[9; 96], &[9; 300]] {
            let initial = initial(mode, source as u64 + 1, message);
            attacker.send_to(&initial, at).expect("sent");
        }
    }
    attacker.send_to(&[0x80; 1200], at).expect("sent");
}

#[test]
fn no_host_without_the_secret_ends_a_receiver_that_waits_for_one_transfer() {
    let scratch = Scratch::new();
    let file = scratch.file("x", 300_000, 1);
    let mut receiver = Receiver::new(&scratch.join("in"), true);
    knock(receiver.address);
    let mut wrong = errand(&file, receiver.address);
    wrong.secret = Secret::Passphrase("able-baker-cat-dot".parse().expect("a passphrase"));
    let outcome = Sender::new(wrong).outcome().expect("an outcome");
    assert!(matches!(outcome.end, End::Closed { code: Code::WrongSecret, .. }), "{outcome:?}");
    let outcome = send_to(&file, receiver.address);
    assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
    assert!(same(&file, &scratch.join("in/x")));
    let turned_away =
        receiver.said().iter().any(|told| matches!(told, Told::TurnedAway(Code::Mode, 1..)));
    assert!(turned_away, "it is told that a sender was turned away");
}

#[test]
fn no_host_without_the_secret_ends_a_transfer_that_runs() {
    let scratch = Scratch::new();
    let file = scratch.file("x", 12_000_000, 2);
    let mut receiver = Receiver::new(&scratch.join("in"), true);
    let mut errand = errand(&file, receiver.address);
    errand.rate = "80mbit".parse().ok();
    let mut sender = Sender::new(errand);
    let mut knocked = 0;
    for told in &receiver.told {
        if let Told::Status(received) = told
            && received.bytes > 0
        {
            knock(receiver.address);
            knocked += 1;
        }
    }
    let outcome = sender.outcome().expect("an outcome");
    assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
    assert!(knocked > 0 && same(&file, &scratch.join("in/x")));
}

#[test]
fn neither_garbage_nor_greetings_of_hosts_unseen_use_the_one_guess_up() {
    let scratch = Scratch::new();
    let mut receiver = Receiver::of_one_guess(&scratch.join("in"), false);
    knock(receiver.address);
    // Right in everything but the secret, and whoever sends them does not hear the RETRY.
    let attacker = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let guesser = || {
        let wrong = "able-baker-cat-dot".parse().expect("a passphrase");
        Box::new(PassphraseClient::new(wrong)) as Box<dyn ClientGreeter>
    };
    for greeting in greetings(200, &guesser) {
        attacker.send_to(&greeting, receiver.address).expect("sent");
    }
    // Nor do right guesses.
    for number in 0..3 {
        let outcome =
            send_to(&scratch.file(&format!("{number}"), 300_000, number), receiver.address);
        assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    }
    receiver.stop();
    assert!(!receiver.said().iter().any(|told| matches!(told, Told::Spent)));
}

#[test]
fn a_wrong_guess_uses_the_one_up_and_leaves_the_transfer_that_runs_alone() {
    let scratch = Scratch::new();
    let (large, small) = (scratch.file("large", 6_000_000, 4), scratch.file("small", 1000, 3));
    let mut receiver = Receiver::of_one_guess(&scratch.join("in"), false);
    let mut slow = errand(&large, receiver.address);
    slow.rate = "16mbit".parse().ok();
    let mut first = Sender::new(slow);
    first.wait_for(1_000_000);
    let mut wrong = errand(&small, receiver.address);
    wrong.secret = Secret::Passphrase("able-baker-cat-dot".parse().expect("a passphrase"));
    let outcome = Sender::new(wrong).outcome().expect("an outcome");
    assert!(matches!(outcome.end, End::Closed { code: Code::WrongSecret, .. }), "{outcome:?}");
    assert!(receiver.told.iter().any(|told| matches!(told, Told::Spent)));
    let outcome = send_to(&small, receiver.address);
    assert!(matches!(outcome.end, End::Closed { code: Code::Spent, .. }), "{outcome:?}");
    let outcome = first.outcome().expect("an outcome");
    assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Incomplete, "it ends by itself");
    assert!(same(&large, &scratch.join("in/large")) && !scratch.join("in/small").exists());
}

#[test]
fn a_receiver_of_one_transfer_takes_the_first_and_tells_the_others_so() {
    let scratch = Scratch::new();
    let (large, small) = (scratch.file("large", 4_000_000, 4), scratch.file("small", 1000, 3));
    let mut receiver = Receiver::new(&scratch.join("in"), true);
    let mut slow = errand(&large, receiver.address);
    slow.rate = "16mbit".parse().ok();
    let mut first = Sender::new(slow);
    first.wait_for(1_000_000);
    let outcome = send_to(&small, receiver.address);
    let End::Closed { code: Code::Busy, by_peer: true, text } = &outcome.end else {
        panic!("{outcome:?}");
    };
    assert!(text.contains("one transfer"), "{text}");
    let outcome = first.outcome().expect("an outcome");
    assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
    assert!(same(&large, &scratch.join("in/large")) && !scratch.join("in/small").exists());
}

#[test]
fn a_receiver_that_is_stopped_says_so_to_every_sender() {
    let scratch = Scratch::new();
    let large = scratch.file("large", 5_000_000, 4);
    let mut receiver = Receiver::new(&scratch.join("in"), false);
    let mut others: Vec<Sender> = Vec::new();
    for number in 0..7 {
        let folder = scratch.join(&format!("{number}"));
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::hard_link(&large, folder.join("large")).expect("a link");
        let mut errand = errand(&folder, receiver.address);
        errand.rate = "8mbit".parse().ok();
        others.push(Sender::new(errand));
    }
    let opened = |told: &Told| matches!(told, Told::Opened);
    assert_eq!(receiver.told.iter().filter(opened).take(7).count(), 7);
    receiver.stop();
    for sender in &mut others {
        let outcome = sender.outcome().expect("an outcome");
        assert!(matches!(outcome.end, End::Closed { code: Code::Stopped, by_peer: true, .. }));
    }
}
