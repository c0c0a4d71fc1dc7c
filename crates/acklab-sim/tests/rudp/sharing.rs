//! One flow of reliable UDP beside cross traffic that does not give way to loss, and beside flows that do: it shares with the
//! former and leaves the latter their own. The whole table is docs/lossy.md's.

use crate::coupled::{Case, Rival, shares};

/// Share, 1 is fair: least, median and most of three seeds, 60 s.
fn beside(rtt_ms: u64, rival: &'static str, count: usize) -> [f64; 3] {
    let rivals = vec![Rival::Tcp(rival); count];
    // A queue of one bandwidth-delay product.
    let shares = shares(&Case { rtt_ms, queue_ms: rtt_ms, rivals, paths: 1 });
    println!("{rtt_ms} ms, {count} {rival}: {shares:.2?}");
    shares
}

#[test]
fn a_flow_holds_its_own_beside_one_that_does_not_heed_loss() {
    // Beside one, 0.10 where loss alone decides.
    assert!(beside(10, "bbr1", 1)[1] >= 0.5);
    assert!(beside(10, "bbr1", 4)[1] >= 0.4);
}

#[test]
fn it_does_not_take_the_places_in_a_full_queue_of_those_that_send_two_at_once() {
    let rivals = vec![Rival::Linux("reno"); 4];
    let shares = shares(&Case { rtt_ms: 40, queue_ms: 40, rivals, paths: 1 });
    println!("4 Linux Reno: {shares:.2?}");
    assert!(shares[1] <= 1.4, "{shares:?}");
}

#[test]
fn flows_that_heed_loss_keep_their_share() {
    for rival in ["reno", "cubic"] {
        assert!(beside(10, rival, 1)[1] <= 1.3);
        assert!(beside(10, rival, 4)[1] <= 1.8);
    }
}
