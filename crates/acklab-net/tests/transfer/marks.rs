//! Networks that drop what is marked for ECN.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acklab_core::packet::Ecn;
use acklab_net::transfer::receive::Verdict;
use acklab_net::transfer::send::End;

use crate::ends::{Receiver, Scratch, Sender, errand, same};
use crate::relay::{Relay, Seen};

#[test]
fn a_network_that_drops_marked_datagrams_costs_the_marks_and_not_the_transfer() {
    for (up, down) in [(true, true), (true, false), (false, true)] {
        let scratch = Scratch::new();
        let file = scratch.file("x", 5_000_000, 1);
        let mut receiver = Receiver::new(&scratch.join("in"), true);
        let dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&dropped);
        let rule = move |seen: &Seen| {
            let drops = seen.ecn != Ecn::NotEct && if seen.to_server { up } else { down };
            count.fetch_add(u64::from(drops), Ordering::SeqCst);
            !drops
        };
        let relay = Relay::new(receiver.address, Box::new(rule));
        let mut sender = Sender::new(errand(&file, relay.address));
        // A sender that does not get through greets anew.
        assert_eq!(sender.told.recv().ok(), None, "up {up}, down {down}");
        let outcome = sender.outcome().expect("an outcome");
        assert!(matches!(outcome.end, End::Finished), "{up} {down}: {outcome:?}");
        assert_eq!(receiver.verdict().expect("a verdict"), Verdict::Complete);
        assert!(same(&file, &scratch.join("in/x")));
        let dropped = dropped.load(Ordering::SeqCst);
        assert!((1..=20).contains(&dropped), "{dropped} datagrams were marked");
        assert!(outcome.status.seconds < 3.0, "{outcome:?}");
    }
}
