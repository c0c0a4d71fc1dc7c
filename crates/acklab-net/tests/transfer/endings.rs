//! The network goes away just when everything is stored.

use std::path::PathBuf;

use acklab_core::time::{Span, Time};
use acklab_net::transfer::receive::Verdict;
use acklab_net::transfer::send::{End, Outcome};

use crate::ends::{Receiver, Scratch, Sender, Told, errand, same, send_to};
use crate::relay::{Relay, Rule, Seen};

/// Nothing comes back from the server for `outage`, from when `file` has its name there.
fn silence(file: PathBuf, outage: Span) -> Rule {
    let mut since: Option<Time> = None;
    Box::new(move |seen: &Seen| {
        if since.is_none() && file.exists() {
            since = Some(seen.now);
        }
        let silent = since.is_some_and(|since| seen.now.since(since) < outage);
        seen.to_server || !silent
    })
}

/// Sends 3 MB with an outage at the end.
fn outage_at_the_end(once: bool, outage: Span) -> (Receiver, Outcome) {
    let scratch = Scratch::new();
    let (file, copy) = (scratch.file("x", 3_000_000, 1), scratch.join("in/x"));
    let receiver = Receiver::new(&scratch.join("in"), once);
    let relay = Relay::new(receiver.address, silence(copy.clone(), outage));
    let outcome = send_to(&file, relay.address);
    assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    assert!(same(&file, &copy));
    assert_eq!(outcome.status.progress.stored_bytes, 3_000_000);
    assert!(outcome.status.wire_bytes() < 5_000_000, "it was sent twice: {outcome:?}");
    (receiver, outcome)
}

#[test]
fn a_short_outage_at_the_end_costs_its_time_alone() {
    let (mut receiver, outcome) = outage_at_the_end(false, Span::from_millis(1500));
    assert!(outcome.status.seconds < 4.0, "{outcome:?}");
    assert_eq!(receiver.stop(), Verdict::Interrupted);
    let ends = receiver.said().into_iter().filter(|told| matches!(told, Told::Ended { .. }));
    assert_eq!(ends.count(), 1);
}

#[test]
fn a_sender_that_did_not_hear_the_end_greets_anew_and_is_told() {
    let (mut receiver, _) = outage_at_the_end(true, Span::from_millis(6500));
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
}

#[test]
fn a_receiver_of_one_transfer_stays_for_a_sender_that_may_not_have_heard_the_end() {
    let scratch = Scratch::new();
    let (file, folder) = (scratch.file("x", 1_000_000, 2), scratch.join("in"));
    let mut receiver = Receiver::new(&folder, true);
    let relay = Relay::new(receiver.address, silence(folder.join("x"), Span::MAX));
    let mut sender = Sender::new(errand(&file, relay.address));
    let stored = |told| matches!(told, Told::Status(status) if status.stored == 1);
    assert!(receiver.told.iter().any(stored));
    // Both are gone: neither says goodbye.
    drop(relay);
    sender.stop().expect("an outcome");
    let ended = receiver.told.iter().find(|told| matches!(told, Told::Ended { .. }));
    assert!(matches!(ended, Some(Told::Ended { unheard: true, .. })), "{ended:?}");
    assert!(folder.join(".acklab-part").exists(), "what was stored is remembered");
    let outcome = send_to(&file, receiver.address);
    assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    assert_eq!(outcome.status.progress.resumed, 1_000_000);
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
    assert!(!folder.join(".acklab-part").exists());
}

#[test]
fn a_long_transfer_makes_new_keys_by_another_connection_and_sends_next_to_nothing_twice() {
    let scratch = Scratch::new();
    let (file, folder) = (scratch.file("x", 12_000_000, 3), scratch.join("in"));
    let mut receiver = Receiver::new(&folder, true);
    let mut errand = errand(&file, receiver.address);
    errand.rate = "48mbit".parse().ok();
    errand.renewal = Span::from_millis(600);
    let mut sender = Sender::new(errand);
    let outcome = sender.outcome().expect("an outcome");
    assert!(matches!(outcome.end, End::Finished), "{outcome:?}");
    assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
    let opened = receiver.said().iter().filter(|told| matches!(told, Told::Opened)).count();
    assert!((2..8).contains(&opened), "{opened} connections");
    assert_eq!(sender.told.try_iter().count(), 0, "there is nothing to tell");
    // What was not confirmed when a connection ended comes again: a few chunks each.
    let again = outcome.status.progress.sent - 12_000_000;
    assert!(again < opened as u64 * 3_000_000, "{again} B twice in {opened} connections");
    assert!(same(&file, &folder.join("x")));
}
