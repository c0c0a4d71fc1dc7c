//! The network goes away at the sender's end: no interface, no address, a path that cannot be opened.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use acklab_net::transfer::receive::Verdict;
use acklab_net::transfer::send::{End, Outcome};
use acklab_rudp::PathState;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;

use crate::ends::{Receiver, Scratch, Sender, errand, gate, same};

const LOCAL: &str = "10.77.0.1";
const SPARE: &str = "10.77.0.9";
const REMOTE: &str = "10.77.0.2";

/// Runs `ip` in the namespace of the calling thread.
fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status().expect("ip runs");
    assert!(status.success(), "ip {words}: {status}");
}

/// Why there can be no namespaces here.
fn not_permitted() -> Option<String> {
    if Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_err() {
        return Some("the program `ip` is not here".to_owned());
    }
    let tried = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join().expect("no panic");
    tried.err().map(|errno| format!("network namespaces: {errno}: not permitted here"))
}

/// Calls `test` in a namespace with an interface `near`, with the address of a receiver in another namespace
/// at the other end of the cable, which must complete one transfer.
fn across_a_cable(folder: &Path, test: impl FnOnce(SocketAddr) + Send + 'static) {
    if let Some(why) = not_permitted() {
        eprintln!("SKIPPED: an outage at the sender: {why}");
        return;
    }
    let folder = folder.to_owned();
    let run = move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a namespace");
        ip("link add near type veth peer name far");
        let (ready, far_side) = channel();
        let (go, plugged) = channel();
        let other = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("a namespace");
            ready.send(gettid()).expect("the test waits");
            plugged.recv().expect("the cable");
            ip(&format!("addr add {REMOTE}/24 dev far"));
            ip("link set far up");
            Receiver::with(&folder, true, gate(), &format!("{REMOTE}:0"))
        });
        let tid = far_side.recv().expect("the other side");
        ip(&format!("link set far netns {tid}"));
        ip(&format!("addr add {LOCAL}/24 dev near"));
        ip("link set near up");
        go.send(()).expect("it waits");
        let mut receiver = other.join().expect("a receiver");
        test(receiver.address);
        assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
    };
    thread::spawn(run).join().expect("the test");
}

/// Waits until the sender complains in these words.
fn hear(sender: &Sender, words: &str) {
    assert!(sender.told.iter().any(|told| told.contains(words)), "it ended before \"{words}\"");
}

fn finish(sender: &mut Sender) -> Outcome {
    let outcome = sender.outcome().expect("an outcome");
    assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    outcome
}

/// Takes the network from a sender in the middle, until it has found out that it can open no path.
fn interrupted(down: &'static str, up: &'static str, named: bool) {
    let scratch = Scratch::new();
    let file = scratch.file("x", 12_000_000, 1);
    let from = file.clone();
    across_a_cable(&scratch.join("in"), move |to| {
        let mut errand = errand(&from, to);
        errand.rate = "40mbit".parse().ok();
        if named {
            errand.paths = vec![(LOCAL.parse().expect("an address"), to)];
        }
        let mut sender = Sender::new(errand);
        sender.wait_for(3_000_000);
        ip(down);
        hear(&sender, "greeting it anew");
        hear(&sender, "trying again");
        while sender.progress.try_recv().is_ok() {}
        ip(up);
        // What was confirmed before does not come again.
        let confirmed = sender.progress.iter().find(|&confirmed| confirmed > 0);
        assert!(confirmed.is_some_and(|confirmed| confirmed >= 3_000_000), "{confirmed:?}");
        finish(&mut sender);
        assert!(same(&from, &from.parent().expect("a folder").join("in/x")));
    });
}

#[test]
fn a_sender_whose_interface_is_down_for_a_while_goes_on_when_it_is_back() {
    interrupted("link set near down", "link set near up", false);
}

#[test]
fn a_sender_whose_address_is_gone_for_a_while_goes_on_when_it_is_back() {
    interrupted("addr del 10.77.0.1/24 dev near", "addr add 10.77.0.1/24 dev near", true);
}

#[test]
fn a_sender_that_gets_another_address_goes_on_at_once() {
    let scratch = Scratch::new();
    let file = scratch.file("x", 12_000_000, 4);
    let from = file.clone();
    across_a_cable(&scratch.join("in"), move |to| {
        let mut errand = errand(&from, to);
        errand.rate = "40mbit".parse().ok();
        let mut sender = Sender::new(errand);
        sender.wait_for(3_000_000);
        // Another prefix, so that it does not go with the first one.
        ip(&format!("addr add {SPARE}/16 dev near"));
        ip(&format!("addr del {LOCAL}/24 dev near"));
        let outcome = finish(&mut sender);
        let told: Vec<String> = sender.told.try_iter().collect();
        assert!(told.is_empty(), "{told:?}");
        let [path] = outcome.status.paths[..] else { panic!("{outcome:?}") };
        assert_eq!(path.local.ip(), SPARE.parse::<IpAddr>().expect("an address"));
        assert!(same(&from, &from.parent().expect("a folder").join("in/x")));
    });
}

#[test]
fn a_path_that_cannot_be_opened_is_told_and_used_when_it_can() {
    let scratch = Scratch::new();
    let file = scratch.file("x", 8_000_000, 2);
    across_a_cable(&scratch.join("in"), move |to| {
        let mut errand = errand(&file, to);
        errand.rate = "40mbit".parse().ok();
        errand.paths = [LOCAL, SPARE].map(|ip| (ip.parse().expect("an address"), to)).to_vec();
        let mut sender = Sender::new(errand);
        hear(&sender, SPARE);
        sender.wait_for(1_000_000);
        ip("addr add 10.77.0.9/24 dev near");
        let outcome = finish(&mut sender);
        let late: IpAddr = SPARE.parse().expect("an address");
        let path = outcome.status.paths.iter().find(|path| path.local.ip() == late);
        assert!(path.is_some_and(|path| path.state == PathState::Active), "{outcome:?}");
    });
}

#[test]
fn a_sender_without_any_path_says_so_at_once() {
    let scratch = Scratch::new();
    let file = scratch.file("x", 1000, 3);
    let mut errand = errand(&file, "127.0.0.1:9".parse().expect("an address"));
    // TEST-NET-1, RFC 5737: no host has it.
    errand.paths = vec![("192.0.2.1".parse().expect("an address"), errand.to[0])];
    let error = Sender::new(errand).outcome().expect_err("no path").to_string();
    assert!(error.contains("192.0.2.1"), "{error}");
}

#[test]
fn more_paths_than_there_can_be_are_refused_at_the_start() {
    let scratch = Scratch::new();
    let mut errand = errand(&scratch.file("x", 10, 1), "127.0.0.1:9".parse().expect("an address"));
    errand.paths = (1..=8).map(|host| (IpAddr::from([127, 0, 0, host]), errand.to[0])).collect();
    errand.to[0].set_port(10);
    let error = Sender::new(errand).outcome().expect_err("nine paths").to_string();
    assert!(error.contains("at most 8"), "{error}");
}

/// What a sender complains of first, within a second.
fn first_complaint(to: SocketAddr) -> String {
    let scratch = Scratch::new();
    let mut sender = Sender::new(errand(&scratch.file("x", 10, 1), to));
    let told = sender.told.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    sender.stop().expect("an outcome");
    told
}

#[test]
fn that_no_program_listens_is_told_within_a_second_and_tried_on() {
    let unbound = UdpSocket::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let told = first_complaint(unbound);
    assert!(told.contains("listens") && told.contains("trying"), "{told:?}");
}

#[test]
fn that_datagrams_are_too_large_for_the_interface_is_told_within_a_second() {
    if let Some(why) = not_permitted() {
        eprintln!("SKIPPED: a small MTU: {why}");
        return;
    }
    let run = || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a namespace");
        ip("link set lo mtu 1200 up");
        first_complaint("127.0.0.1:9".parse().expect("an address"))
    };
    let told = thread::spawn(run).join().expect("the test");
    assert!(told.contains("1228"), "{told:?}");
}
